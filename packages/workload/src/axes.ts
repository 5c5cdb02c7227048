/** How a plan's ranks are laid out: how many, along which axes, and how many hold the same. */
import { TriremeError } from "@trireme/core";
import { pipelineOf } from "./pipelines.ts";
import type { Plan } from "./plan.ts";

/** Ranks the plan runs on: tp × cp × dp × pp, or what the widths of its pipelines' stages sum to. */
export function ranks(p: Plan): number {
  if (p.pipelines === undefined) return p.tp * p.cp * p.dp * p.pp;
  return p.pipelines.flat().reduce((sum, stage) => sum + stage.tp, 0);
}

/**
 * Microbatches each replica runs in a step; where pipelines differ, one of them.
 * Throws TriremeError "PLAN" where they differ and none is named.
 */
export function microbatches(p: Plan, pipeline?: number): number {
  if (p.pipelines !== undefined) pipelineOf(p.pipelines, pipeline);
  const batch = p.pipelineBatches?.[pipeline ?? 0] ?? p.globalBatch / p.dp;
  return batch / p.microbatch;
}

/** A mesh axis: a name and how many ranks lie along it. */
export interface Axis {
  readonly name: string;
  readonly size: number;
}

/**
 * The mesh axes in the plan's order, the first varying fastest: by default tensor parallelism, which
 * talks most, between neighbours; then context, if it is split at all, and data; pipeline stages furthest apart.
 * Throws TriremeError "PLAN" where pipelines differ: no axes hold them; see `stagedAxes`.
 */
export function axes(p: Plan): readonly Axis[] {
  if (p.pipelines !== undefined) pipelineOf(p.pipelines, undefined);
  return p.order
    .filter((name) => name !== "cp" || p.cp > 1)
    .map((name) => ({ name, size: p[name] }));
}

/**
 * The same ranks as routed experts see them: the tensor, context and data axes laid out anew, in the place of
 * the first of them, as expert-tensor, expert and expert-data parallelism (folding, arXiv 2504.14960 §3).
 * Throws TriremeError "PLAN" when the order puts "pp" between those axes, so that they cannot be folded.
 */
export function expertAxes(p: Plan): readonly Axis[] {
  const folded: readonly Axis[] = [
    { name: "etp", size: p.etp },
    { name: "ep", size: p.ep },
    { name: "edp", size: expertReplicas(p) },
  ];
  const stages = { name: "pp", size: p.pp };
  if (p.order[0] === "pp") return [stages, ...folded];
  if (p.order.at(-1) === "pp" || p.pp === 1) return [...folded, stages];
  throw new TriremeError(
    "PLAN",
    `order ${p.order.join("-")} puts pp ${p.pp} between the axes that experts fold; put it first or last`,
  );
}

/** Ranks that hold the same routed experts of a stage: tp × cp × dp / (ep × etp). */
export function expertReplicas(p: Plan): number {
  return (p.tp * p.cp * p.dp) / (p.ep * p.etp);
}

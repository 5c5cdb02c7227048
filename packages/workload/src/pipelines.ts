/**
 * Plans whose pipelines differ (HexiScale, arXiv 2409.01143 §3): each has stages of its own, each stage
 * its own width and layers, each pipeline its own share of the batch. The scalar degrees are then derived:
 * `dp` is the number of pipelines, `pp` the most stages, `tp` the widest stage. Pipelines that are all
 * alike are the usual plan, and become it.
 */
import { TriremeError, nearestDivisor } from "@trireme/core";
import type { Model } from "./model.ts";
import type { Plan, PlanOptions } from "./plan.ts";

/** One stage of one pipeline. */
export interface PipelineStage {
  /** Ranks that share its layers. */
  readonly tp: number;
  readonly layers: number;
}

/** The pipelines of a plan, each its stages in model order. */
export type Pipelines = readonly (readonly PipelineStage[])[];

const degrees = ["tp", "pp", "dp"] as const;

/**
 * Options with the degrees that their pipelines have; without pipelines, as they are.
 * Throws TriremeError "PLAN" where there is no stage, or a degree is stated that is another.
 */
export function withDegrees(o: PlanOptions): PlanOptions {
  const { pipelines, pipelineBatches, ...rest } = o;
  if (pipelines === undefined) {
    if (pipelineBatches === undefined) return o;
    return fail(`pipelineBatches ${pipelineBatches.join("+")} need pipelines; leave them out`);
  }
  const empty = pipelines.findIndex((stages) => stages.length === 0);
  if (pipelines.length === 0 || empty >= 0) {
    fail(`pipelines${empty < 0 ? "" : `[${empty}]`} has no stage; give each pipeline one or more`);
  }
  const all = pipelines.flat();
  const derived = {
    tp: all.reduce((most, stage) => Math.max(most, stage.tp), 0),
    pp: pipelines.reduce((most, stages) => Math.max(most, stages.length), 0),
    dp: pipelines.length,
  };
  for (const key of degrees) {
    if (o[key] !== undefined && o[key] !== derived[key]) {
      fail(`${key} ${o[key]} is not ${derived[key]}, which the pipelines make it; leave it out`);
    }
  }
  if (!alike(pipelines, pipelineBatches)) {
    return { ...o, ...derived, etp: o.etp ?? 1 };
  }
  const stageLayers = pipelines[0]!.map((stage) => stage.layers);
  // Ranks run stage by stage, pipeline by pipeline.
  return { ...rest, ...derived, stageLayers, order: o.order ?? ["tp", "cp", "pp", "dp"] };
}

function alike(pipelines: Pipelines, batches: readonly number[] | undefined): boolean {
  const [first] = pipelines;
  return (
    (batches ?? []).every((n) => n === batches![0]) &&
    pipelines.every(
      (stages) =>
        stages.length === first!.length &&
        stages.every((s, i) => s.tp === first![0]!.tp && s.layers === first![i]!.layers),
    )
  );
}

const plain = [
  ["cp", [1], "use cp 1"],
  ["ep", [1], "use ep 1"],
  ["etp", [1], "use etp 1"],
  ["vpp", [1], "use vpp 1"],
  ["schedule", ["1f1b", "gpipe"], "use schedule 1f1b or gpipe"],
  ["stageLayers", [undefined], "leave it out: each stage says its layers"],
  ["accountForEmbedding", [false], "leave it out: each stage says its layers"],
  ["accountForLoss", [false], "leave it out: each stage says its layers"],
  ["scatterGather", [false], "leave it out: a leader sends whole activations"],
  ["zero", [0, 1], "use zero 0 or 1"],
] as const;

/** Throws TriremeError "PLAN" for the first rule of pipelines that `p` breaks on `m`. */
export function checkPipelines(m: Model, p: Plan): void {
  const { pipelines } = p;
  if (pipelines === undefined) return;
  for (const [key, legal, instead] of plain) {
    const value = p[key];
    if (legal.some((v) => v === value)) continue;
    fail(`pipelines that differ exclude ${key} ${value?.toString()}; ${instead}`);
  }
  if (p.order.join("-") !== "tp-cp-dp-pp") {
    fail(`pipelines that differ have ranks stage by stage; leave order ${p.order.join("-")} out`);
  }
  if (m.experts !== undefined) {
    fail(`pipelines that differ cannot fold experts, and ${m.name} has them; make them alike`);
  }
  for (const [i, stages] of pipelines.entries()) checkStages(m, p, stages, `pipelines[${i}]`);
  checkBatches(p);
}

function checkStages(m: Model, p: Plan, stages: readonly PipelineStage[], name: string): void {
  for (const [i, stage] of stages.entries()) {
    for (const key of ["tp", "layers"] as const) {
      if (Number.isSafeInteger(stage[key]) && stage[key] >= 1) continue;
      fail(`${name}[${i}]: ${key} ${stage[key]} must be a whole number, 1 or more`);
    }
    // A layer's gradients are summed in as many pieces as its widest stage has ranks.
    if (p.tp % stage.tp !== 0) {
      fail(
        `${name}[${i}]: tp ${stage.tp} does not divide the widest stage's tp ${p.tp}; the nearest legal tp is ${nearestDivisor(p.tp, stage.tp)}`,
      );
    }
  }
  const layers = stages.reduce((sum, stage) => sum + stage.layers, 0);
  if (layers !== m.layers) {
    const list = stages.map((stage) => stage.layers).join("+");
    fail(`${name} has ${list} = ${layers} layers, but ${m.name} has ${m.layers}; they must be all`);
  }
}

function checkBatches(p: Plan): void {
  const { pipelineBatches: batches, microbatch, globalBatch, dp } = p;
  if (batches === undefined) return;
  if (batches.length !== dp) {
    fail(
      `pipelineBatches has ${batches.length} entries, but there are ${dp} pipelines; give ${dp}`,
    );
  }
  const total = batches.reduce((a, b) => a + b, 0);
  if (total !== globalBatch) {
    fail(`pipelineBatches ${batches.join("+")} = ${total}, but globalBatch is ${globalBatch}`);
  }
  for (const [i, n] of batches.entries()) {
    if (Number.isSafeInteger(n) && n >= 1 && n % microbatch === 0) continue;
    const near = Math.max(1, Math.round(n / microbatch)) * microbatch || microbatch;
    fail(
      `pipelineBatches[${i}] ${n} is not a multiple of microbatch ${microbatch}; the nearest is ${near}`,
    );
  }
}

/** One of the pipelines that differ. Throws TriremeError "PLAN" without its number, or with a wrong one. */
export function pipelineOf(
  pipelines: Pipelines,
  pipeline: number | undefined,
): readonly PipelineStage[] {
  const found = pipeline === undefined ? undefined : pipelines[pipeline];
  if (found !== undefined) return found;
  const asked = pipeline === undefined ? "" : `, not ${pipeline}`;
  return fail(
    `the plan's ${pipelines.length} pipelines differ: what it is asked for is known of one of 0 to ${pipelines.length - 1} alone${asked}`,
  );
}

function fail(message: string): never {
  throw new TriremeError("PLAN", message);
}

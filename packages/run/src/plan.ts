/** The plan section resolved: degrees that fill the cluster, or the planner's answer. */
import { type Model, type Pipelines, type Plan, definePlan, ranks } from "@trireme/workload";
import { type Cluster, emulates, hostOf, peakOf } from "@trireme/topology";
import { balancedLayers } from "./balanced-layers.ts";
import type { PlanSection } from "./description.ts";
import { type Resolution, stated } from "./resolution.ts";

/** Finds a plan where a run says `plan: auto`; a refusal gives its reason in one line. */
export type PlanResolver = (request: {
  readonly model: Model;
  readonly cluster: Cluster;
}) => { readonly ok: true; readonly plan: Plan } | { readonly ok: false; readonly reason: string };

/** The plan of a run; its ranks are the cluster's devices. */
export function resolvePlan(
  resolution: Resolution,
  written: "auto" | PlanSection,
  model: Model,
  cluster: Cluster,
  planner: PlanResolver | undefined,
): Plan | undefined {
  if (written === "auto") return askPlanner(resolution, model, cluster, planner);
  const dp =
    written.pipelines === undefined
      ? replicas(resolution, written, cluster.devices)
      : pipelineCount(resolution, written, written.pipelines, cluster.devices);
  if (dp === undefined) return undefined;
  const arithmetic = precisions(cluster);
  const chip = hostOf(cluster, 0).accelerator;
  const precision = written.precision ?? arithmetic.find((p) => !emulates(chip, p))!;
  if (!arithmetic.includes(precision)) {
    const rule = `${chip.name} does not compute in ${precision}`;
    return resolution.problem(
      ["plan", "precision"],
      precision,
      rule,
      `use ${arithmetic.join(" or ")}`,
    );
  }
  for (const key of ["matrixPrecision", "attentionPrecision"] as const) {
    const format = written[key];
    if (format === undefined || peakOf(chip, format) !== undefined) continue;
    const rule = `${chip.name} does not compute in ${format}`;
    return resolution.problem(["plan", key], format, rule, "leave it out");
  }
  const plan = resolution.attempt(["plan"], written, () =>
    planOf(model, { ...written, precision }, dp),
  );
  if (plan !== undefined) noteDefaults(resolution, written, plan);
  return plan;
}

function planOf(model: Model, written: PlanSection, dp: number): Plan {
  const { stageLayers, ...rest } = stated(written);
  const options = { ...rest, ...(dp === 0 ? {} : { dp }) };
  if (stageLayers !== "balanced") {
    return definePlan(model, stageLayers === undefined ? options : { ...options, stageLayers });
  }
  const even = definePlan(model, options);
  return definePlan(model, { ...options, stageLayers: balancedLayers(model, even) });
}

function askPlanner(
  resolution: Resolution,
  model: Model,
  cluster: Cluster,
  planner: PlanResolver | undefined,
): Plan | undefined {
  if (planner === undefined) {
    const rule = "needs a planner, and none was given";
    return resolution.problem(["plan"], "auto", rule, "state the degrees, for example plan.tp=8");
  }
  const answer = planner({ model, cluster });
  if (!answer.ok) return resolution.problem(["plan"], "auto", answer.reason);
  const used = ranks(answer.plan);
  for (const [key, value] of Object.entries(answer.plan)) {
    noteValue(resolution, key, value, "the planner");
  }
  if (used === cluster.devices) return answer.plan;
  const rule = `the planner's plan has ${used} ranks, but the cluster has ${cluster.devices} devices`;
  return resolution.problem(["plan"], "auto", rule);
}

/** What every device of the cluster computes in, of what a plan may ask for; at least one. */
function precisions(cluster: Cluster): readonly Plan["precision"][] {
  const known = ["bf16", "fp16", "fp32"] as const;
  const common = known.filter((p) =>
    cluster.pools.every((pool) => peakOf(pool.host.accelerator, p) !== undefined),
  );
  return common.length === 0 ? ["fp32"] : common;
}

/** Data parallel replicas that fill the devices, or the stated number if it does. */
function replicas(resolution: Resolution, plan: PlanSection, devices: number): number | undefined {
  const { tp = 1, cp = 1, pp = 1 } = plan;
  const width = tp * cp * pp;
  const degrees = `tp(${tp})${cp > 1 ? ` x cp(${cp})` : ""} x pp(${pp})`;
  const below = Math.floor(devices / width) * width;
  const near = below === 0 ? `${width}` : `${below} or ${below + width}`;
  if (plan.dp === undefined) {
    if (devices % width === 0) {
      return resolution.orElse(
        ["plan", "dp"],
        undefined,
        devices / width,
        "what fills the devices",
      );
    }
    const rule = `${degrees} = ${width} does not divide the cluster's ${devices} devices`;
    return resolution.problem(["plan"], undefined, rule, `nearest: ${near} devices`);
  }
  const product = plan.dp * width;
  if (product === devices) return plan.dp;
  const rule = `dp(${plan.dp}) x ${degrees} = ${product} ranks, but the cluster has ${devices} devices`;
  const fits = devices % width === 0 ? `dp ${devices / width}, or ` : "";
  return resolution.problem(["plan"], undefined, rule, `nearest: ${fits}${product} devices`);
}

/** Pipelines whose stages have as many ranks together as there are devices. */
function pipelineCount(
  resolution: Resolution,
  plan: PlanSection,
  pipelines: Pipelines,
  devices: number,
): number | undefined {
  const widths = pipelines.map((stages) => stages.map((stage) => stage.tp).join("+"));
  const total = pipelines.flat().reduce((sum, stage) => sum + stage.tp, 0);
  // Without a stage, the plan's own rule says so.
  if (total === devices || total === 0) return plan.dp ?? pipelines.length;
  const rule = `pipelines of ${widths.join(", ")} = ${total} ranks, but the cluster has ${devices} devices`;
  return resolution.problem(["plan", "pipelines"], undefined, rule, `nearest: ${total} devices`);
}

function noteValue(resolution: Resolution, key: string, value: unknown, from: string): void {
  if (typeof value === "number" || typeof value === "string" || typeof value === "boolean") {
    resolution.orElse<number | string | boolean>(["plan", key], undefined, value, from);
  }
}

const origins: Readonly<Record<string, string>> = {
  sequence: "the model's context",
  precision: "what the devices compute in",
};

/** Says of every field that the file leaves out what it came to. */
function noteDefaults(resolution: Resolution, written: PlanSection, plan: Plan): void {
  for (const [key, value] of Object.entries(plan)) {
    if (key === "dp" || key === "stageLayers" || key in written) continue;
    const from = origins[key] ?? "default";
    noteValue(resolution, key, value, from);
  }
}

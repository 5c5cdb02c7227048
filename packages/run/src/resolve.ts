/** From what a run file says to a run with nothing left to derive, or to all that is wrong with it. */
import { type LocalHost, nominalLocalHost, resolveCluster } from "./cluster.ts";
import type { RunDescription } from "./description.ts";
import { fingerprint } from "./fingerprint.ts";
import { problemsOf } from "./issues.ts";
import { resolveModel } from "./model.ts";
import { type PlanResolver, resolvePlan } from "./plan.ts";
import { inFileOrder, type Problem, RunError } from "./problem.ts";
import type { Plan } from "@trireme/workload";
import { Resolution, stated } from "./resolution.ts";
import type { ResolvedEngine, ResolvedRun } from "./resolved.ts";
import { resolveRouter } from "./router.ts";
import { runSchema } from "./schema.ts";
import { resolveTraining } from "./training.ts";

/** What a description cannot say by itself. */
export interface RunOptions {
  /** This machine, for runs on it; default a nominal one. */
  readonly local?: LocalHost;
  /** Tokens the tokenizer knows, once the data are read; only a character tokenizer needs it. */
  readonly vocabulary?: number;
  /** The planner, for `plan: auto`. */
  readonly plan?: PlanResolver;
}

/** A whole run, or everything that is wrong with its description in the order of the file. */
export type RunCheck =
  | { readonly ok: true; readonly run: ResolvedRun }
  | { readonly ok: false; readonly problems: readonly Problem[] };

/** Checks a description and makes everything explicit; never throws for a bad description. */
export function checkRun(description: unknown, options: RunOptions = {}): RunCheck {
  const parsed = runSchema().safeParse(description);
  if (!parsed.success) {
    const problems = problemsOf(description, parsed.error.issues);
    return { ok: false, problems: inFileOrder(description, problems) };
  }
  const resolution = new Resolution();
  const run = resolve(resolution, parsed.data, options);
  if (run !== undefined && resolution.problems.length === 0) return { ok: true, run };
  return { ok: false, problems: inFileOrder(description, resolution.problems) };
}

/**
 * The run that a description describes.
 * @throws RunError with every problem.
 */
export function defineRun(description: unknown, options: RunOptions = {}): ResolvedRun {
  const check = checkRun(description, options);
  if (!check.ok) throw new RunError(check.problems);
  return check.run;
}

function resolve(
  resolution: Resolution,
  d: RunDescription,
  options: RunOptions,
): ResolvedRun | undefined {
  const architecture = resolveModel(resolution, d, options.vocabulary);
  const local = options.local ?? nominalLocalHost;
  const cluster = resolveCluster(resolution, d.cluster, product(d.plan), local);
  const training = resolveTraining(resolution, d);
  if (architecture === undefined || cluster === undefined) return undefined;
  const plan = resolvePlan(resolution, d.plan, architecture, cluster, options.plan);
  if (plan === undefined) return undefined;
  const router = d.router && resolveRouter(resolution, d.router, architecture, plan);
  const engine = resolveEngine(resolution, d.engine, plan);
  const computed = {
    model: architecture,
    plan,
    seed: d.seed,
    ...(router && { router }),
    engine,
  };
  const { data, optimizer, steps } = training;
  const { name: _, source: __, ...shape } = architecture;
  return {
    name: resolution.orElse(["name"], d.name, architecture.name, "the model's name"),
    cluster,
    ...computed,
    ...training,
    derived: resolution.derived,
    fingerprint: fingerprint({ ...computed, model: shape, data, optimizer, steps }),
  };
}

function resolveEngine(
  resolution: Resolution,
  engine: RunDescription["engine"],
  { matrixPrecision }: Plan,
): ResolvedEngine {
  const { fp8Scaling } = engine;
  if (fp8Scaling !== undefined && matrixPrecision !== "fp8") {
    const rule = "needs products in FP8";
    resolution.problem(
      ["engine", "fp8Scaling"],
      fp8Scaling,
      rule,
      "state plan.matrixPrecision fp8",
    );
  }
  return stated(engine);
}

/** Ranks of the degrees as written. */
function product(plan: RunDescription["plan"]): number {
  if (plan === "auto") return 1;
  if (plan.pipelines !== undefined) {
    return plan.pipelines.flat().reduce((sum, stage) => sum + stage.tp, 0) || 1;
  }
  const { tp = 1, cp = 1, pp = 1, dp = 1 } = plan;
  return tp * cp * pp * dp;
}

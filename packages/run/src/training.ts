/** The sections of training resolved: data, optimizer, steps, saving, evaluation and the sample. */
import type { RunDescription } from "./description.ts";
import { type Resolution, stated } from "./resolution.ts";
import type {
  ResolvedCheckpoint,
  ResolvedData,
  ResolvedEvaluate,
  ResolvedGuard,
  ResolvedOptimizer,
  ResolvedSample,
} from "./resolved.ts";

/** What the training sections come to. */
export interface ResolvedTraining {
  readonly data?: ResolvedData;
  readonly optimizer: ResolvedOptimizer;
  readonly steps: number;
  readonly checkpoint: ResolvedCheckpoint;
  readonly evaluate: ResolvedEvaluate;
  readonly guard?: ResolvedGuard;
  readonly sample?: ResolvedSample;
}

/** Resolves all that concerns the steps of a run and not how they are split. */
export function resolveTraining(resolution: Resolution, d: RunDescription): ResolvedTraining {
  const steps = stepsOf(resolution, d);
  const seedOf = (section: string, own: number | undefined): number =>
    resolution.orElse([section, "seed"], own, d.seed, "seed");
  const { every, interval, keep, directory } = d.checkpoint;
  return {
    ...(d.data === undefined ? {} : { data: { ...d.data, seed: seedOf("data", d.data.seed) } }),
    optimizer: resolveOptimizer(resolution, d, steps),
    steps,
    checkpoint: {
      ...(every === undefined ? {} : { every }),
      ...(interval === undefined ? {} : { interval }),
      keep,
      ...(directory === undefined ? {} : { directory }),
    },
    evaluate: {
      every: resolution.orElse(
        ["evaluate", "every"],
        d.evaluate.every,
        steps,
        "steps: once, at the end",
      ),
      batches: d.evaluate.batches,
    },
    ...(d.guard === undefined ? {} : { guard: resolveGuard(resolution, d) }),
    ...(d.sample === undefined
      ? {}
      : { sample: { ...d.sample, seed: seedOf("sample", d.sample.seed) } }),
  };
}

/** The guard goes back to saved steps, and compares within a window that holds those it settles in. */
function resolveGuard(resolution: Resolution, d: RunDescription): ResolvedGuard {
  const guard: ResolvedGuard = stated(d.guard ?? {});
  const { window = 64, settle } = guard;
  if (settle !== undefined && settle > window) {
    const rule = `must be at most guard.window ${window}`;
    resolution.problem(["guard", "settle"], settle, rule, `nearest: ${window}`);
  }
  const { every, interval } = d.checkpoint;
  if (every === undefined && interval === undefined) {
    const rule = "needs checkpoints to go back to";
    resolution.problem(["guard"], undefined, rule, "state checkpoint.every or checkpoint.interval");
  }
  return guard;
}

function stepsOf(resolution: Resolution, d: RunDescription): number {
  if (d.steps === undefined && d.data !== undefined) {
    const rule = "required: optimizer steps, since there are data to train on";
    resolution.problem(["steps"], undefined, rule);
    // Enough that nothing else seems wrong.
    return d.optimizer.warmup + (d.optimizer.decay ?? 1);
  }
  return resolution.orElse(["steps"], d.steps, 1, "no data: one step to simulate");
}

function path(key: string): readonly string[] {
  return ["optimizer", key];
}

function resolveOptimizer(
  resolution: Resolution,
  d: RunDescription,
  steps: number,
): ResolvedOptimizer {
  const o = d.optimizer;
  const lowest = o.schedule === "constant" ? o.learningRate : o.learningRate / 10;
  const from = o.schedule === "constant" ? "learningRate" : "learningRate / 10";
  const minimum = resolution.orElse(
    path("minimumLearningRate"),
    o.minimumLearningRate,
    lowest,
    from,
  );
  if (minimum > o.learningRate) {
    const rule = `must be at most learningRate ${o.learningRate}`;
    resolution.problem(path("minimumLearningRate"), minimum, rule, `nearest: ${o.learningRate}`);
  }
  if (o.warmup > steps) {
    const rule = `must be at most the ${steps} steps of the run`;
    resolution.problem(path("warmup"), o.warmup, rule, `nearest: ${steps}`);
  }
  const rest = Math.max(1, steps - o.warmup);
  const decay = resolution.orElse(
    path("decay"),
    o.decay,
    Math.min(rest, Math.max(1, Math.round(steps / 5))),
    "a fifth of steps",
  );
  if (decay > rest) {
    const rule = `must be at most the ${rest} steps after warm-up`;
    resolution.problem(path("decay"), decay, rule, `nearest: ${rest}`);
  }
  return { ...o, minimumLearningRate: minimum, decay };
}

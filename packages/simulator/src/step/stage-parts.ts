/**
 * The actions of one stage in parts that spans are drawn from: computing, the communication that the
 * cost model found hidden behind it, and what it found exposed. The times of computing and exposed
 * communication of an action add up to the cost model's.
 */
import type { Seconds } from "@trireme/core";
import { type PricedOperator, type StepCosts, overlapContention } from "@trireme/cost-model";
import type { Lane } from "@trireme/timeline";
import type { CollectiveOperator, Pass } from "@trireme/workload";
import { kernelsOf } from "./kernels.ts";
import type { GroupAxis } from "./rank-layout.ts";
import type { Part, StageParts, TimedCollective } from "./step-description.ts";

/** The lane that the collectives of each axis run on. */
export type Lanes = Readonly<Record<GroupAxis, Lane>>;

/** What of the costs of a step its parts are made from. */
export type PartCosts = Pick<
  StepCosts,
  | "forward"
  | "inputGradient"
  | "weightGradient"
  | "recompute"
  | "tensorParallel"
  | "sharding"
  | "communication"
  | "operators"
>;

/** What the parts of a stage are made from. */
export interface StagePartsOptions {
  readonly costs: PartCosts;
  /** Stage of the model. */
  readonly stage: number;
  readonly collectives: readonly CollectiveOperator[];
  readonly lanes: Lanes;
  /** Whether parts list their kernels. */
  readonly operators: boolean;
  /** Fraction of the device that a hidden collective keeps from computing; the cost model's when left out. */
  readonly contention?: number;
}

/** Weights and gradients, not activations, travel. */
export function amongReplicas(c: CollectiveOperator): boolean {
  return c.axis === "dp" || c.axis === "edp";
}

/** The parts of the actions of a stage. */
export function stageParts(o: StagePartsOptions): StageParts {
  const { costs, stage, collectives, lanes } = o;
  const timeOf = (c: CollectiveOperator): Seconds =>
    c.count * costs.communication.collective(c.kind, c.axis, c.bytes);
  const of = (replicas: boolean, passes: readonly Pass[]): readonly CollectiveOperator[] =>
    collectives.filter((c) => amongReplicas(c) === replicas && passes.includes(c.pass));
  const total = (list: readonly CollectiveOperator[]): Seconds =>
    list.reduce((sum, c) => sum + timeOf(c), 0);
  /** A part of the time of collectives, shared out over their kinds in proportion to their times. */
  const share = (list: readonly CollectiveOperator[], time: Seconds): TimedCollective[] => {
    const whole = total(list);
    if (!(time > 0 && whole > 0)) return [];
    const alike = (a: CollectiveOperator, c: CollectiveOperator): boolean =>
      a.kind === c.kind && a.axis === c.axis;
    const first = list.filter((c, i) => list.findIndex((x) => alike(x, c)) === i);
    return first.map((one) => {
      const same = list.filter((c) => alike(one, c));
      const part = time / whole;
      return {
        kind: one.kind,
        axis: one.axis,
        lane: lanes[one.axis],
        bytes: same.reduce((sum, c) => sum + c.bytes * c.count, 0) * Math.min(1, part),
        duration: total(same) * part,
      };
    });
  };
  const part = (
    kind: Part["kind"],
    passes: readonly Pass[],
    time: Seconds,
    exposed: Seconds,
    sharded: Seconds,
  ): Part => {
    const kernels = passes.flatMap((pass) => costs.operators(stage, pass));
    // Rounding may leave a hair below 0 where communication is all there is.
    const duration = Math.max(0, time - exposed - sharded);
    const own = of(false, passes);
    const weights = of(true, passes);
    const shown = budgeted(total(own), exposed, o.contention);
    const shownWeights = budgeted(total(weights), sharded, o.contention);
    const alone = kernels.reduce((sum, k) => sum + secondsOf(k), 0);
    // Launches may hold kernels up: then each has its part of the longer time.
    const stretch = alone > 0 ? duration / alone : 0;
    const timeIn = (kinds: readonly string[]): Seconds =>
      stretch *
      kernels.reduce((sum, k) => sum + (kinds.includes(k.operator.kind) ? secondsOf(k) : 0), 0);
    // What computing hides is over when the computing is.
    const hidden = Math.min(duration, Math.max(0, total(own) - exposed));
    const gathered = Math.min(duration, Math.max(0, total(weights) - sharded));
    return {
      kind,
      duration,
      flops: kernels.reduce((sum, { operator }) => sum + operator.flops * operator.count, 0),
      hidden: [...share(own, hidden), ...share(weights, gathered)],
      exposed: [...share(own, shown), ...share(weights, shownWeights)],
      attention: timeIn(["attention"]),
      experts: timeIn(["grouped-gemm"]),
      ...(o.operators ? { kernels: kernelsOf(kernels, stretch) } : {}),
    };
  };

  const backward = costs.tensorParallel.backward[stage]!;
  const scattered = costs.sharding.backward[stage]!;
  const recompute = costs.recompute[stage]!;
  const input = costs.inputGradient[stage]!;
  const weight = costs.weightGradient[stage]!;
  // The cost model tells the exposed time of backward as one: recomputation has what its own
  // collectives take, then the input gradient as much as fits in it, then the weight gradient.
  const inRecompute = Math.min(backward, recompute, total(of(false, ["recompute"])));
  const inInput = Math.min(backward - inRecompute, Math.max(0, input - scattered));
  const inWeight = backward - inRecompute - inInput;
  const again = recompute > 0 ? [part("recompute", ["recompute"], recompute, inRecompute, 0)] : [];
  const gradients: readonly Pass[] = ["input-gradient", "weight-gradient"];
  return {
    F: [
      part(
        "forward",
        ["forward"],
        costs.forward[stage]!,
        costs.tensorParallel.forward[stage]!,
        costs.sharding.forward[stage]!,
      ),
    ],
    B: [...again, part("backward", gradients, input + weight, inInput + inWeight, scattered)],
    I: [...again, part("input-gradient", ["input-gradient"], input, inInput, scattered)],
    W: [part("weight-gradient", ["weight-gradient"], weight, inWeight, 0)],
  };
}

/**
 * The exposed time of communication of `time` under another contention than the cost model's: of its
 * `exposed`, what outlasts computing stays, and what hidden communication takes from it changes.
 */
function budgeted(time: Seconds, exposed: Seconds, contention: number | undefined): Seconds {
  if (contention === undefined) return exposed;
  const alone = (exposed - overlapContention * time) / (1 - overlapContention);
  const outlasts = Math.min(time, Math.max(0, alone));
  return outlasts + contention * (time - outlasts);
}

function secondsOf({ operator, seconds }: PricedOperator): Seconds {
  return operator.count * seconds;
}

/**
 * The actions of one stage in parts that spans are drawn from: computing, and the communication
 * which the cost model found exposed. The times of an action's parts add up to the cost model's.
 */
import type { Seconds } from "@trireme/core";
import type { StepCosts } from "@trireme/cost-model";
import type { Lane } from "@trireme/timeline";
import type { CollectiveOperator, Pass } from "@trireme/workload";
import type { Part, StageParts, TimedCollective } from "./step-description.ts";

/** The parts of the actions of `stage`, whose collectives are `collectives`, on the lanes of their axes. */
export function stageParts(
  costs: StepCosts,
  stage: number,
  collectives: readonly CollectiveOperator[],
  lanes: Readonly<Record<"tp" | "dp", Lane>>,
): StageParts {
  const timeOf = (c: CollectiveOperator): Seconds =>
    c.count * costs.communication.collective(c.kind, c.axis, c.bytes);
  const of = (axis: "tp" | "dp", passes: readonly Pass[]): readonly CollectiveOperator[] =>
    collectives.filter((c) => c.axis === axis && passes.includes(c.pass));
  /** An exposed time, shared out over the kinds of collectives in proportion to their times. */
  const exposed = (
    axis: "tp" | "dp",
    passes: readonly Pass[],
    time: Seconds,
  ): TimedCollective[] => {
    const list = of(axis, passes);
    const whole = list.reduce((sum, c) => sum + timeOf(c), 0);
    if (!(time > 0 && whole > 0)) return [];
    return [...new Set(list.map((c) => c.kind))].map((kind) => {
      const same = list.filter((c) => c.kind === kind);
      return {
        kind,
        lane: lanes[axis],
        bytes: same.reduce((sum, c) => sum + c.bytes * c.count, 0),
        duration: (time * same.reduce((sum, c) => sum + timeOf(c), 0)) / whole,
      };
    });
  };
  const part = (
    kind: Part["kind"],
    passes: readonly Pass[],
    time: Seconds,
    tensor: Seconds,
    data: Seconds,
  ): Part => ({
    kind,
    // Rounding may leave a hair below 0 where communication is all there is.
    duration: Math.max(0, time - tensor - data),
    flops: passes
      .flatMap((pass) => costs.operators(stage, pass))
      .reduce((sum, { operator }) => sum + operator.flops * operator.count, 0),
    tensor: exposed("tp", passes, tensor),
    data: exposed("dp", passes, data),
  });

  const backward = costs.tensorParallel.backward[stage]!;
  const scattered = costs.sharding.backward[stage]!;
  const recompute = costs.recompute[stage]!;
  const input = costs.inputGradient[stage]!;
  const weight = costs.weightGradient[stage]!;
  // The cost model tells the exposed time of backward as one: recomputation has what its own
  // collectives take, then the input gradient as much as fits in it, then the weight gradient.
  const inRecompute = Math.min(
    backward,
    recompute,
    of("tp", ["recompute"]).reduce((sum, c) => sum + timeOf(c), 0),
  );
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

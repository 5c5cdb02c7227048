import type { ActionKind } from "@trireme/schedulers";
import type { Flops } from "@trireme/core";
import { type Model, type Plan, type Stage, stageOperators } from "@trireme/workload";

/** The arithmetic of one microbatch through a stage, for an action of each kind. */
export function stageFlops(model: Model, plan: Plan, stage: Stage): (kind: ActionKind) => Flops {
  const sums = { forward: 0, recompute: 0, "input-gradient": 0, "weight-gradient": 0, update: 0 };
  for (const { pass, flops, count } of stageOperators(model, plan, stage).operators) {
    sums[pass] += flops * count;
  }
  const [input, weight] = [sums["input-gradient"], sums["weight-gradient"]];
  return (kind) => {
    switch (kind) {
      case "F":
        return sums.forward;
      case "B":
        return sums.recompute + input + weight;
      case "I":
        return sums.recompute + input;
      case "W":
        return weight;
      default:
        return 0;
    }
  };
}

import { definePlan, model, stageOperators, stages } from "@trireme/workload";

const gpt = model("gpt3-175b");
const plan = definePlan(gpt, { tp: 8, pp: 8, vpp: 6, dp: 4, globalBatch: 768, zero: 1 });
const list = stages(gpt, plan);
const kinds = [list[0]!, list[1]!, list.at(-1)!];

export const benchmarks = [
  {
    id: "workload/operators",
    what: "operators and collectives of GPT-3 175B's three kinds of stage for one plan",
    unit: "s",
    better: "lower",
    target: 200e-6,
    time: (): void => {
      for (const stage of kinds) stageOperators(gpt, plan, stage);
    },
  },
] as const;

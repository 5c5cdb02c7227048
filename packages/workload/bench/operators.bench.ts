import { defineModel, definePlan, model, stageOperators, stages } from "@trireme/workload";

const gpt = model("gpt3-175b");
const options = { tp: 8, pp: 8, vpp: 6, dp: 4, globalBatch: 768, zero: 1 } as const;
const plan = definePlan(gpt, options);
const list = stages(gpt, plan);
const kinds = [list[0]!, list[1]!, list.at(-1)!];

/** Plans that shape every kernel differently, as a search meets them. */
const plans = [1, 2, 4, 8].flatMap((tp) =>
  [1, 2, 4].flatMap((microbatch) =>
    [1, 8].map((dp) => definePlan(gpt, { tp, dp, microbatch, globalBatch: 768, zero: 1 })),
  ),
);
const whole = plans.map((p) => ({ p, stage: stages(gpt, p)[0]! }));

let next = 0;

export const benchmarks = [
  {
    id: "workload/operators",
    what: "every operator and collective of GPT-3 175B for a new plan of the model",
    unit: "s",
    better: "lower",
    target: 20e-6,
    time: (): void => {
      const { p, stage } = whole[next++ % whole.length]!;
      stageOperators(gpt, p, stage);
    },
  },
  {
    id: "workload/operators-by-stage",
    what: "the same of its three kinds of stage in a pipeline",
    unit: "s",
    better: "lower",
    target: null,
    time: (): void => {
      for (const stage of kinds) stageOperators(gpt, plan, stage);
    },
  },
  {
    id: "workload/operators-first",
    what: "the same from the model's shape on: model, checked plan, stages, operators",
    unit: "s",
    better: "lower",
    target: 200e-6,
    time: (): void => {
      const fresh = defineModel({ ...gpt, name: "fresh" });
      const own = definePlan(fresh, options);
      for (const stage of stages(fresh, own).slice(0, 2)) stageOperators(fresh, own, stage);
    },
  },
] as const;

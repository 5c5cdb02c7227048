import { estimate } from "@trireme/cost-model";
import { defineCluster } from "@trireme/topology";
import { definePlan, model } from "@trireme/workload";

const gpt = model("gpt3-175b");
const cluster = defineCluster({ host: "dgx-a100-80", hosts: 128 });
const plans = [1, 2, 3, 4, 6, 8, 12, 16].map((microbatchesPerRank) =>
  definePlan(gpt, {
    tp: 8,
    pp: 8,
    dp: 16,
    globalBatch: 128 * microbatchesPerRank,
    sequenceParallel: true,
    zero: 1,
  }),
);

export const benchmarks = [
  {
    id: "cost-model/estimates",
    what: "full estimates of GPT-3 175B on 1,024 A100 in a second, nothing kept between them",
    unit: "estimates/s",
    better: "higher",
    target: 20_000,
    amount: plans.length,
    time: (): void => {
      for (const plan of plans) estimate({ model: gpt, plan, cluster });
    },
    peer: {
      name: "Calculon (Python)",
      value: 58,
      source: "one full evaluation in process, 17.3 ms",
    },
  },
] as const;

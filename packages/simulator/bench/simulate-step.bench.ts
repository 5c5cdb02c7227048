import { simulateStep } from "@trireme/simulator";
import { defineCluster } from "@trireme/topology";
import { definePlan, model } from "@trireme/workload";

const gpt3 = model("gpt3-175b");
const cluster = defineCluster({ host: "dgx-a100-80", hosts: 1536 });
const plan = definePlan(gpt3, {
  tp: 8,
  pp: 8,
  vpp: 6,
  dp: 192,
  globalBatch: 6144,
  sequenceParallel: true,
  zero: 1,
});

export const benchmarks = [
  {
    id: "simulator/gpt3-12288",
    what: "seconds to simulate a step of GPT-3 175B on 12,288 GPUs",
    unit: "s",
    better: "lower",
    target: 1,
    time: (): void => {
      simulateStep({ model: gpt3, plan, cluster });
    },
  },
] as const;

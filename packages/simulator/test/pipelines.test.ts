import { defineCluster } from "@trireme/topology";
import { definePlan, model } from "@trireme/workload";
import { expect, test } from "vitest";
import { simulateStep } from "@trireme/simulator";

test("pipelines that differ are refused in one line", () => {
  const llama = model("llama2-13b");
  const cluster = defineCluster({ host: "dgx-a100-80", hosts: 1 });
  const plan = definePlan(llama, {
    globalBatch: 4,
    pipelines: [[{ tp: 2, layers: 40 }], [{ tp: 1, layers: 40 }]],
  });
  expect(() => simulateStep({ model: llama, plan, cluster })).toThrow(
    "2 pipelines that differ are not simulated; use stages of one width, the same in each",
  );
});

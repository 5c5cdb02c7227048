import { defineCluster } from "@trireme/topology";
import { definePlan, model } from "@trireme/workload";
import { expect, test } from "vitest";
import { estimate, stepCosts } from "@trireme/cost-model";

test("pipelines that differ are refused in one line, as a result", () => {
  const llama = model("llama2-13b");
  const cluster = defineCluster({ host: "dgx-a100-80", hosts: 1 });
  const plan = definePlan(llama, {
    globalBatch: 4,
    pipelines: [[{ tp: 2, layers: 40 }], [{ tp: 1, layers: 40 }]],
  });
  expect(estimate({ model: llama, plan, cluster })).toEqual({
    ok: false,
    reason: "2 pipelines that differ are not priced; use stages of one width, the same in each",
  });
  expect(() => stepCosts({ model: llama, plan, cluster })).toThrow("pipelines differ");
});

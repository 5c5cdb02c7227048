import { defineCluster } from "@trireme/topology";
import { type PlanOptions, definePlan, model } from "@trireme/workload";
import { expect, test } from "vitest";
import { compareByGroup } from "../src/calculon/compare.ts";
import { type CalculonStep, describeForCalculon } from "../src/calculon/describe.ts";

const cluster = defineCluster({ host: "dgx-a100-80", hosts: 32 });

function described(name: string, o: PlanOptions): CalculonStep | string {
  const m = model(name);
  return describeForCalculon({ model: m, plan: definePlan(m, o), cluster });
}

test("a GPT step is described in Calculon's words", () => {
  const step = described("gpt3-175b", {
    tp: 8,
    pp: 8,
    dp: 4,
    vpp: 6,
    globalBatch: 768,
    sequenceParallel: true,
    recompute: "selective",
    flashAttention: false,
    zero: 1,
  });
  expect(step).toMatchObject({
    application: { hidden: 12_288, feedforward: 49_152, attn_heads: 128, num_blocks: 96 },
    execution: {
      num_procs: 256,
      tensor_par_net: 0,
      data_par_net: 1,
      pipeline_par_net: 1,
      activation_recompute: "attn_only",
      pipeline_interleaving: 6,
      optimizer_sharding: true,
      tensor_par_comm_type: "rs_ag",
      seq_par_ag_redo: true,
    },
    system: "a100_80g",
    network: 25,
  });
});

test.each([
  ["llama3-8b", { globalBatch: 8 }, "gated feed-forward blocks"],
  ["mixtral-8x7b", { globalBatch: 8 }, "experts"],
  ["gpt3-175b", { globalBatch: 8 }, "flash attention"],
  [
    "gpt3-175b",
    { globalBatch: 8, flashAttention: false, dp: 8, zero: 3 as const },
    "ZeRO-2 and -3",
  ],
])("%s %j: what it has no words for is named", (name, o, reason) => {
  expect(described(name, o)).toBe(reason);
});

test("errors of both are over the same rows, by group and over all", () => {
  const pair = (id: string, measured: number, predicted: number, calculon: number): object => ({
    row: { group: { id, source: "s", kind: "k" }, id, measured, predicted },
    calculon,
  });
  const pairs = [pair("a", 1, 1.1, 2), pair("a", 1, 0.9, 1), pair("b", 2, 2, 1)];
  const lines = compareByGroup(pairs as Parameters<typeof compareByGroup>[0]);
  expect(lines.map((l) => [l.id, l.n])).toEqual([
    ["a", 2],
    ["b", 1],
    ["all", 3],
  ]);
  expect(lines[0]!.ours.mean).toBeCloseTo(0.1, 12);
  expect(lines[0]!.calculon.mean).toBeCloseTo(0.5, 12);
});

import { expect, test } from "vitest";
import { type CorpusRow, parseCorpus } from "../src/corpus-row.ts";
import { nemoPlan } from "../src/nemo-recipes.ts";

function row(id: string, name: string, gpu: string, precision: string): CorpusRow {
  const dataset = id.startsWith("dgxc-") ? "dgxc" : "other";
  const line = { id, kind: "throughput", dataset, model: { name }, hardware: { gpu } };
  return parseCorpus(JSON.stringify({ ...line, parallel: { precision } }), "f")[0]!;
}

test("NeMo's scripts drop what is beyond an even share, and record graphs where they say so", () => {
  const dropped = { expertCapacity: 1 };
  expect(nemoPlan(row("dgxc-v25.02-x", "grok1-314b", "H100-SXM-80GB", "FP8"))).toEqual(dropped);
  expect(nemoPlan(row("dgxc-v25.05.05-x", "grok1-314b", "GB200-NVL72", "BF16"))).toEqual({
    ...dropped,
    cudaGraphs: "all",
  });
  const llama = "llama4-maverick-17bx128e";
  expect(nemoPlan(row("dgxc-v25.05.05-x", llama, "GB200-NVL72", "FP8"))).toEqual(dropped);
  expect(nemoPlan(row("dgxc-v25.05.05-x", llama, "H100-SXM-80GB", "BF16"))).toEqual(dropped);
  expect(nemoPlan(row("dgxc-v25.05.05-x", llama, "H100-SXM-80GB", "FP8"))).toEqual({
    ...dropped,
    cudaGraphs: "all",
  });
  expect(nemoPlan(row("dgxc-v25.05.05-x", "deepseek-v3", "H100-SXM-80GB", "BF16"))).toEqual({
    ...dropped,
    overlapTensorParallel: false,
  });
});

test("other sources say for themselves", () => {
  expect(nemoPlan(row("mbridge-26.02-x", "deepseek-v3", "H100-SXM-80GB", "BF16"))).toEqual({});
});

import { expect, test } from "vitest";
import { type CorpusRow, parseCorpus } from "../src/corpus-row.ts";
import { describe } from "../src/corpus-plan.ts";
import { densePlan, nemoPlan } from "../src/dgxc-scripts.ts";

function row(
  id: string,
  name: string,
  gpu: string,
  precision: string,
  framework = "NeMo/Megatron-Core",
): CorpusRow {
  const dataset = id.startsWith("dgxc-") ? "dgxc" : "other";
  const line = { id, kind: "throughput", dataset, model: { name }, hardware: { gpu } };
  return parseCorpus(JSON.stringify({ ...line, parallel: { precision, framework } }), "f")[0]!;
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

test("dense rows have the dropout, attention and recomputation of their scripts", () => {
  const of = (name: string, framework: string): unknown =>
    densePlan(row("dgxc-v24.11.1-x", name, "H100-SXM-80GB", "BF16", framework));
  expect(of("gpt3-175b", "NeMo/Megatron-Core")).toEqual({ dropout: 0.1 });
  expect(of("llama3-70b", "NeMo/Megatron-Core")).toEqual({});
  expect(of("gpt3-5b", "Paxml(JAX/XLA)")).toEqual({
    flashAttention: false,
    recompute: "rematerialise",
  });
  expect(of("gpt3-175b", "Paxml(JAX/XLA)")).toMatchObject({ recompute: "selective" });
  expect(of("llama2-70b", "MaxText(JAX/XLA)")).toEqual({ recompute: "operators" });
  expect(densePlan(row("tt-1", "gpt3-175b", "H100-SXM-80GB", "BF16"))).toEqual({});
});

test("a share of the blocks that is recomputed follows from hardware and model utilisation", () => {
  const of = (recompute: string, measured: object): unknown => {
    const line = {
      id: "fms",
      kind: "throughput",
      dataset: "misc",
      model: { name: "m", layers: 80, hidden: 8192, heads: 64, vocab: 32_000, seq: 4096 },
      hardware: { gpu: "H100-SXM-80GB", num_gpus: 8 },
      parallel: { recompute, gbs: 8, mbs: 1 },
      measured,
    };
    const described = describe(parseCorpus(JSON.stringify(line), "f")[0]!);
    return typeof described === "string" ? described : described.plan;
  };
  const blocks = "selective AC (fraction of blocks)";
  expect(of(blocks, { mfu: 0.38, hfu: 0.47 })).toMatchObject({
    recompute: "full",
    recomputeLayers: 57,
  });
  expect(of(blocks, { mfu: 0.5, hfu: 0.7 })).toMatchObject({ recomputeLayers: 80 });
  expect(of("selective layer (every 2nd layer)", {})).toMatchObject({ recomputeLayers: 40 });
  expect(of("none", {})).not.toHaveProperty("recompute");
});

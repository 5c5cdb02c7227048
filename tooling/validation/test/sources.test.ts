import { expect, test } from "vitest";
import { parseCorpus } from "../src/corpus-row.ts";
import { acceleratorOf, unknownAccelerator } from "../src/corpus-hardware.ts";
import { corpusOutcomes } from "../src/corpus.ts";
import { isCompared } from "../src/outcome.ts";
import { tableOutcomes } from "../src/tables.ts";

const dense = {
  id: "row",
  kind: "throughput",
  confidence: "high",
  complete: { all: true, missing: [] },
  dataset: "test",
  model: { name: "m", layers: 32, hidden: 4096, heads: 32, vocab: 32000, seq: 2048, act: "swiglu" },
  hardware: {
    gpu: "H100-SXM-80GB",
    num_gpus: 8,
    gpus_per_node: 8,
    intra_gbs: 450,
    inter_gbps: 400,
  },
  parallel: { tp: 1, pp: 1, mbs: 1, gbs: 64, precision: "BF16" },
  measured: { iter_s: 3 },
};

test("a corpus row becomes a comparison in its family's group", () => {
  const [o] = corpusOutcomes(parseCorpus(JSON.stringify(dense), "f"));
  expect(o).toMatchObject({ group: { id: "dense-h100" }, measured: 3 });
  expect(isCompared(o!) && o.predicted > 0).toBe(true);
});

test("tokens per second stand in for a missing iteration time", () => {
  const row = { ...dense, measured: { tokens_per_s_per_gpu: 2048 } };
  expect(corpusOutcomes(parseCorpus(JSON.stringify(row), "f"))[0]).toMatchObject({ measured: 8 });
});

test.each([
  [{ parallel: { gbs: 64 } }, "missing: mbs"],
  [{ model: { ...dense.model, vocab: null } }, "missing: vocab"],
  [{ measured: {} }, "missing: iteration time"],
  [{ model: { ...dense.model, moe: { experts: 8 } } }, "missing: topk"],
  [{ hardware: { ...dense.hardware, gpu: "abacus" } }, "accelerator not in the catalogue: abacus"],
  [
    { parallel: { ...dense.parallel, tp: 3 } },
    "refused: tp × pp × cp = 3 does not divide 8 devices",
  ],
  [
    { parallel: { ...dense.parallel, mbs: 3 } },
    "refused: globalBatch 64 is not a multiple of dp 8 × microbatch 3",
  ],
])("what cannot be predicted is skipped with its reason", (change, reason) => {
  const [o] = corpusOutcomes(parseCorpus(JSON.stringify({ ...dense, ...change }), "f"));
  expect(o).toMatchObject({ skipped: expect.stringContaining(reason) });
});

test("a TPU's slice is one fabric, whatever its hosts, and its 8-bit integers are no 8-bit floats", () => {
  const predicted = (gpus: number, precision: string, mbs = 1): number => {
    const row = {
      ...dense,
      hardware: { gpu: "TPU-trillium", num_gpus: gpus, gpus_per_node: 4, intra_gbs: 448 },
      parallel: { tp: 1, pp: 1, mbs, gbs: gpus * mbs, zero_stage: 3, precision },
    };
    const [o] = corpusOutcomes(parseCorpus(JSON.stringify(row), "f"));
    if (!isCompared(o!)) throw new Error(JSON.stringify(o));
    return o.predicted;
  };
  // 64 chips gather weights over the fabric's 448 GB/s; over 12.5 GB/s of each host's network 7B weights would take seconds.
  expect(predicted(64, "BF16")).toBeLessThan(1);
  // Two slices of 256 reduce gradients between them.
  expect(predicted(512, "BF16")).toBeGreaterThan(predicted(256, "BF16"));
  // 1836 against 918 TFLOP/s; of one sample, casts of the weights cost as much.
  expect(predicted(64, "INT8", 8)).toBeLessThan(predicted(64, "FP8", 8));
});

test("names of one accelerator are one accelerator", () => {
  const names = ["Habana Gaudi2", "Intel Gaudi2", "Intel(R) Gaudi(R) 2 AI Accelerator", "Gaudi2"];
  for (const gpu of names) expect(acceleratorOf(gpu)?.name).toBe("gaudi2");
  expect(acceleratorOf("AMD Instinct MI325X 256GB HBM3E")?.name).toBe("mi325x");
  expect(acceleratorOf("H200-NVL-141GB(PCIe)")?.name).toBe("h200-nvl");
  expect(acceleratorOf("TPU-v7(Ironwood)")?.name).toBe("tpu-v7");
  expect(unknownAccelerator("unknown (32 ranks)")).toBe("missing: gpu");
});

test("a line that is no measurement is named by file and line", () => {
  expect(() => parseCorpus(`${JSON.stringify(dense)}\n{`, "f")).toThrow("f:2: not JSON");
  expect(() => parseCorpus("{}", "f")).toThrow("f:1: a measurement needs an id and a kind");
});

test("tables are recognised by their header", () => {
  const outcomes = tableOutcomes(
    "gpu,ranks,bytes,time_ns,busbw_gbs\na100,8,201326592,1610200,218.8\nq,2,1,1,1\n",
    "x.csv",
  );
  expect(outcomes[0]).toMatchObject({
    id: "x:2",
    group: { id: "nccl-a100" },
    measured: 1610200e-9,
  });
  expect(outcomes[1]).toMatchObject({ skipped: "unknown gpu: q" });
  expect(() => tableOutcomes("a,b\n1,2\n", "x.csv")).toThrow("header a,b is none of");
  expect(() => tableOutcomes("a,b\n1\n", "x.csv")).toThrow("x.csv:2: 1 cells under 2 columns");
});

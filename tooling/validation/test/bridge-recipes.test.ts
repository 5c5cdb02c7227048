import { expect, test } from "vitest";
import { bridgePlan } from "../src/bridge-recipes.ts";
import { type CorpusRow, parseCorpus } from "../src/corpus-row.ts";

function row(id: string, gpu: string, precision: string, gpus: number, gbs: number): CorpusRow {
  const line = {
    id,
    kind: "throughput",
    dataset: id.startsWith("mbridge-") ? "mbridge" : "other",
    model: { name: "qwen3-30b-a3b" },
    hardware: { gpu, num_gpus: gpus },
    parallel: { precision, gbs },
  };
  return parseCorpus(JSON.stringify(line), "f")[0]!;
}

test("a release's recipe decides dispatch, overlap and graphs", () => {
  expect(bridgePlan(row("mbridge-25.11-x", "H100-SXM-80GB", "FP8-CS", 16, 512))).toEqual({
    dispatch: "all-to-all",
    overlapExpertParallel: true,
    cudaGraphs: "none",
    recompute: "none",
  });
  expect(bridgePlan(row("mbridge-26.02.01-x", "GB200-NVL72", "MXFP8", 8, 512))).toMatchObject({
    dispatch: "unique",
    cudaGraphs: "routing",
  });
});

test("a release between two takes the one before, a later one the last", () => {
  const late = bridgePlan(row("mbridge-26.08-x", "GB300-NVL72", "MXFP8", 8, 512));
  expect(late).toMatchObject({ cudaGraphs: "all", overlapExpertParallel: true });
  expect(bridgePlan(row("mbridge-25.09-x", "H100-SXM-80GB", "BF16", 16, 512))).toEqual(
    bridgePlan(row("mbridge-25.11-x", "H100-SXM-80GB", "BF16", 16, 512)),
  );
});

test("other sources have no recipe", () => {
  expect(bridgePlan(row("tt-1", "H100-SXM-80GB", "BF16", 16, 512))).toBeUndefined();
  expect(bridgePlan(row("mbridge-26.02-x", "MI300X", "BF16", 16, 512))).toBeUndefined();
});

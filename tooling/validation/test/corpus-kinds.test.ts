import { readFileSync } from "node:fs";
import { calibrate } from "@trireme/cost-model";
import { accelerator } from "@trireme/topology";
import { expect, test } from "vitest";
import { parseCorpus } from "../src/corpus-row.ts";
import { corpusOutcomes } from "../src/corpus.ts";
import { isCompared } from "../src/outcome.ts";

const zeroBubble = {
  id: "zb",
  kind: "schedule",
  confidence: "high",
  complete: { all: true, missing: [] },
  hardware: { gpu: "A100-SXM-80GB", num_gpus: 8 },
  parallel: { pp: 8, vpp: 1, num_microbatches: 24, gbs: 24, schedule: "1F1B" },
  measured: {
    samples_per_s_per_gpu: 2,
    theoretical_bubble_rate: 7 / 31,
    profiled_ms: { TF: 10, TB: 10, TW: 10, Tcomm: 1e-9 },
  },
};

test("a profiled schedule is compared by its bubble and by its samples a second", () => {
  const [bubble, step] = corpusOutcomes(parseCorpus(JSON.stringify(zeroBubble), "f"));
  // 24 microbatches of 30 ms and 7 to fill and drain; the bubble of 1F1B is 7/31.
  expect(isCompared(bubble!) && bubble.predicted).toBeCloseTo(31 * 0.03, 9);
  expect(isCompared(bubble!) && bubble.measured).toBeCloseTo(31 * 0.03, 9);
  expect(step).toMatchObject({ group: { id: "schedule-step" }, measured: 24 / 16 });
});

test("an unknown schedule and a missing profile are skipped with the reason", () => {
  const named = { ...zeroBubble, parallel: { ...zeroBubble.parallel, schedule: "eager-1f1b" } };
  expect(corpusOutcomes(parseCorpus(JSON.stringify(named), "f"))).toMatchObject([
    { skipped: "not covered: schedule eager-1f1b" },
  ]);
  const measured = { ...zeroBubble.measured, profiled_ms: { TF: 10 } };
  const partial = { ...zeroBubble, measured };
  expect(corpusOutcomes(parseCorpus(JSON.stringify(partial), "f"))).toMatchObject([
    { skipped: "missing: TF, TB, TW, Tcomm" },
  ]);
});

test("a layer of experts has a forward and a backward time, an exchange one", () => {
  const row = {
    ...zeroBubble,
    id: "layer",
    kind: "moe-dispatch",
    model: { hidden: 4096, ffn: 14_336, seq: 4096, moe: { experts: 8, topk: 2, ffn: 14_336 } },
    hardware: {
      gpu: "H100-SXM-80GB",
      gpus_per_node: 8,
      intra_gbs: 450,
      inter_gbps: 400,
      num_gpus: 8,
    },
    parallel: { ep: 8, precision: "BF16", moe_dispatcher: "DeepEP" },
    measured: { fwd_ms: 4, bwd_ms: 8 },
  };
  const [forward, backward] = corpusOutcomes(parseCorpus(JSON.stringify(row), "f")).filter(
    isCompared,
  );
  expect(forward!.predicted).toBeGreaterThan(1e-3);
  // Twice the products backward.
  expect(backward!.predicted).toBeGreaterThan(1.4 * forward!.predicted);
  const exchange = {
    ...row,
    parallel: { ep: 8, op: "dispatch", precision: "FP8", tokens_per_rank: 128 },
    measured: { latency_us: 100 },
  };
  const sent = corpusOutcomes(parseCorpus(JSON.stringify(exchange), "f")).find(isCompared);
  expect(sent!.predicted).toBeGreaterThan(1e-6);
  expect(sent!.predicted).toBeLessThan(1e-3);
});

test("attention written out moves its scores, copies its operands, and adds a mask where it is causal", () => {
  const predicted = (change: Record<string, unknown>): number => {
    const row = {
      ...zeroBubble,
      id: "written-out",
      kind: "attention",
      parallel: {
        seq: 4096,
        head_dim: 64,
        heads: 32,
        batch: 4,
        causal: false,
        direction: "fwd+bwd",
        impl: "PyTorch-unfused",
        ...change,
      },
      measured: { tflops: 50 },
    };
    const [outcome] = corpusOutcomes(parseCorpus(JSON.stringify(row), "f"));
    if (!isCompared(outcome!)) throw new Error(JSON.stringify(outcome));
    return outcome.predicted;
  };
  const scores = 4 * 32 * 4096 ** 2;
  const whole = predicted({});
  // Scores are written or read eleven times in 16 bits, and 1.7 TB/s are the most that kernels reach on the A100.
  expect(whole).toBeGreaterThan((22 * scores) / 1.7e12);
  expect(whole).toBeLessThan((2 * 22 * scores) / 1.7e12);
  expect(predicted({ direction: "fwd" }) + predicted({ direction: "bwd" })).toBeCloseTo(whole, 9);
  // The mask is read, and scores once more read and written: by instructions, not by the memory.
  const mask = predicted({ causal: true }) - whole;
  expect(mask).toBeGreaterThan((4 * scores) / 1.7e12);
  // Twice the batch is twice the work; the gaps between kernels are not.
  expect(predicted({ batch: 8 }) / whole).toBeGreaterThan(1.99);
  expect(predicted({ batch: 8 }) / whole).toBeLessThanOrEqual(2);
  const flash = predicted({ impl: "FlashAttention-2" });
  expect(whole / flash).toBeGreaterThan(2);
});

test("products measured on H100 calibrate a profile that predicts others of its kind", () => {
  const file = new URL("../data/corpus.jsonl", import.meta.url);
  const rows = parseCorpus(readFileSync(file, "utf8"), "corpus.jsonl");
  const lines = rows.flatMap((r) => {
    const { M, N, K } = r.parallel;
    const known = typeof M === "number" && typeof N === "number" && typeof K === "number";
    const rate = r.measured["tflops"];
    const single = r.kind === "gemm" && r.id.startsWith("deepgemm") && r.id.includes("dense");
    if (!known || typeof rate !== "number" || !single) return [];
    return [`gemm/fp8/forward/1x${M}x${N}x${K},${(2 * M * N * K) / (rate * 1e12)}`];
  });
  expect(lines.length).toBeGreaterThan(5);
  const profile = calibrate({
    measurements: ["key,seconds", ...lines].join("\n"),
    accelerator: accelerator("h800"),
    precision: "bf16",
    testShare: 0.3,
  });
  expect(profile.characteristics.quantised).toBeGreaterThan(0.5);
  expect(profile.characteristics.quantised).toBeLessThanOrEqual(1);
  // The kernels of one library, as many as a dozen: a loose bound on shapes unseen.
  expect(profile.report.test.n).toBeGreaterThan(0);
  expect(profile.report.test.median).toBeLessThan(0.2);
});

import { expect, test } from "vitest";
import {
  type Adapter,
  type AdapterTarget,
  type Plan,
  defineModel,
  definePlan,
  model,
  parameters,
} from "@trireme/workload";
import { gpuOverhead, memory } from "@trireme/cost-model";

const gpt = model("gpt3-175b");

function activations(o: Partial<Plan>): number {
  const plan = definePlan(gpt, {
    tp: 8,
    globalBatch: 1,
    dropout: 0.1,
    flashAttention: false,
    ...o,
  });
  const rows = plan.sequenceParallel ? 2048 / plan.tp : 2048;
  return (memory({ model: gpt, plan }).activations - head(rows)) / 96;
}

/** Input and result of the final norm (§4.3 of the same paper), 2 bytes each. */
const head = (rows: number): number => 4 * rows * 12_288;

test("a layer keeps what Korthikanti et al. count", () => {
  // arXiv 2205.05198, Table 2, in bytes: s = 2048, b = 1, h = 12288, a = 128, t = 8.
  const sbh = 2048 * 12_288;
  const scores = (5 * 128 * 2048) / 12_288;
  expect(activations({ tp: 1 }) / (sbh * (34 + scores))).toBeCloseTo(1, 12);
  expect(activations({}) / (sbh * (10 + 24 / 8 + scores / 8))).toBeCloseTo(1, 12);
  expect(activations({ sequenceParallel: true }) / ((sbh * (34 + scores)) / 8)).toBeCloseTo(1, 12);
  expect(
    activations({ sequenceParallel: true, recompute: "selective" }) / ((sbh * 34) / 8),
  ).toBeCloseTo(1, 12);
  expect(activations({ recompute: "full" }) / (2 * sbh)).toBeCloseTo(1, 12);
});

test("mixed precision costs 18 bytes a parameter, and ZeRO shares them out", () => {
  const m = model("llama3-8b");
  const n = parameters(m).total;
  const states = (zero: Plan["zero"]): number => {
    const x = memory({ model: m, plan: definePlan(m, { dp: 8, globalBatch: 8, zero }) });
    return (x.weights + x.gradients + x.optimizer) / n;
  };
  expect(states(0)).toBe(2 + 4 + 12);
  expect(states(1)).toBeCloseTo(2 + 4 + 12 / 8, 9);
  expect(states(2)).toBeCloseTo(2 + (4 + 12) / 8, 9);
  // A sixteenth of the weights is gathered at a time: two layers of 32.
  expect(states(3)).toBeCloseTo(2 / 8 + 2 / 16 + (4 + 12) / 8, 9);
});

test("frozen matrices keep no inputs, and adapters their own", () => {
  const plain = model("llama3-8b");
  const bytesOf = (targets: readonly AdapterTarget[], dropout = 0): number => {
    const m = defineModel({ ...plain, adapter: { rank: 16, targets, dropout } });
    const plan = definePlan(m, { globalBatch: 1 });
    return memory({ model: m, plan }).activations / (32 * 8192);
  };
  const all = memory({ model: plain, plan: definePlan(plain, { globalBatch: 1 }) });
  const { hidden, ffn } = plain;
  // A token's inputs of both blocks and of the last product, less that of the block with adapters.
  const [rank, two] = [2 * 16, 2];
  expect(bytesOf(["qkv"])).toBeCloseTo(
    all.activations / (32 * 8192) - two * (hidden + ffn) + rank,
    6,
  );
  // Those of one product share their input, attention keeps that of the next, and the last needs its own.
  expect(bytesOf(["query", "value"]) - bytesOf(["qkv"])).toBeCloseTo(rank, 6);
  expect(bytesOf(["qkv", "output"]) - bytesOf(["qkv"])).toBeCloseTo(rank, 6);
  expect(bytesOf(["qkv", "down"]) - bytesOf(["qkv"])).toBeCloseTo(rank + two * ffn, 6);
  // With dropout each keeps a copy and a mask.
  expect(bytesOf(["query", "value"], 0.1) - bytesOf(["query"], 0.1)).toBeCloseTo(
    rank + 3 * hidden,
    6,
  );
});

test("a frozen base is kept in as many bits as it says", () => {
  const of = (base: Adapter["base"]): number => {
    const m = defineModel({ ...model("llama2-70b"), adapter: { rank: 16, base } });
    return memory({ model: m, plan: definePlan(m, { globalBatch: 1 }) }).weights;
  };
  const layers = parameters(model("llama2-70b")).layers;
  // The adapters count among what the layers are a part of.
  expect((of("full") - of("fp8")) / layers).toBeCloseTo(1, 2);
  expect(of("fp8")).toBe(of("int8"));
  expect((of("full") - of("nf4")) / layers).toBeCloseTo(2 - 0.5 - 1 / 64, 2);
});

test("adapters leave encoders nothing to keep", () => {
  const plain = model("llama3-8b");
  const encoder = { layers: 24, hidden: 1024, heads: 16, patch: 588, tokens: 576 };
  const kept = (encoders: readonly (typeof encoder)[]): number => {
    const m = defineModel({ ...plain, encoders, adapter: { rank: 16 } });
    return memory({ model: m, plan: definePlan(m, { globalBatch: 1 }) }).activations;
  };
  expect(kept([encoder])).toBe(kept([]));
});

test("the loss holds what its own kernels do, whatever other elementary operations there are", () => {
  const m = model("llama3-8b");
  const logits = 8192 * m.vocab;
  const workspace = (o: Partial<Plan>): number =>
    memory({ model: m, plan: definePlan(m, { globalBatch: 1, ...o }) }).workspace;
  const eager = workspace({ fusedElementwise: false });
  expect(eager - workspace({ fusedElementwise: false, fusedLoss: true })).toBe((16 - 6) * logits);
  expect(workspace({ fusedLoss: false })).toBe(workspace({}));
});

/** Microbatches in flight on each rank. */
const kept = (schedule: Plan["schedule"], globalBatch: number): number[] => {
  const plan = definePlan(gpt, { pp: 4, globalBatch, schedule });
  const one = memory({ model: gpt, plan: definePlan(gpt, { pp: 4, globalBatch: 1 }) }).ranks;
  return memory({ model: gpt, plan }).ranks.map((r, i) => r.activations / one[i]!.activations);
};

test("1F1B keeps p − r microbatches on rank r, GPipe all of them", () => {
  expect(kept("1f1b", 8)).toEqual([4, 3, 2, 1]);
  expect(kept("1f1b", 2)).toEqual([2, 2, 2, 1]);
  expect(kept("gpipe", 8)).toEqual([8, 8, 8, 8]);
  // With one chunk a rank, orders of several are 1F1B's.
  expect(kept("interleaved", 8)).toEqual([4, 3, 2, 1]);
  expect(kept("dfs-bfs", 8)).toEqual([4, 3, 2, 1]);
});

const firstRank = (vpp: number): number =>
  memory({ model: gpt, plan: definePlan(gpt, { pp: 8, vpp, globalBatch: 64 }) }).ranks[0]!
    .activations;

test("interleaving keeps 1 + (p − 1)/(pv) of 1F1B's first rank", () => {
  // Korthikanti et al. §4.2.3.
  expect(firstRank(6) / firstRank(1)).toBeCloseTo(1 + 7 / (8 * 6), 12);
});

test("backward works on gradients of the residual and of the widest product, and on one microbatch's logits", () => {
  const workspace = (o: Partial<Plan>): number[] => {
    const plan = definePlan(gpt, { pp: 4, globalBatch: 8, ...o });
    const x = memory({ model: gpt, plan, overhead: { ...gpuOverhead, libraries: 0 } });
    return x.ranks.map((r) => r.workspace);
  };
  const gradients = 2 * 2048 * (2 * 12_288 + gpt.ffn);
  const logits = 2048 * gpt.vocab;
  const last = workspace({ schedule: "1f1b" });
  expect(last.slice(0, 3)).toEqual([gradients, gradients, gradients]);
  expect(last[3]).toBe(gradients + 6 * logits);
  // All forwards first: the loss keeps what is 32 bits wide of the other seven.
  expect(workspace({ schedule: "gpipe" })[3]).toBe(gradients + (6 + 7 * 4) * logits);
});

test("the worst rank is the result, and its parts are the total", () => {
  const plan = definePlan(gpt, { pp: 8, tp: 8, globalBatch: 8 });
  const x = memory({ model: gpt, plan });
  expect(x.total).toBe(Math.max(...x.ranks.map((r) => r.total)));
  for (const r of x.ranks) {
    expect(
      r.weights + r.gradients + r.optimizer + r.activations + r.workspace + r.overhead,
    ).toBeCloseTo(r.total, 0);
  }
});

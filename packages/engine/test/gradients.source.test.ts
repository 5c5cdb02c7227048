import { defineModel, definePlan, stages } from "@trireme/workload";
import { expect, test } from "vitest";
import { gelu, swiglu } from "../src/operators/activation.ts";
import { attention } from "../src/operators/attention.ts";
import { crossEntropy } from "../src/operators/cross-entropy.ts";
import { embedding } from "../src/operators/embedding.ts";
import { addLowRank } from "../src/operators/low-rank.ts";
import { linear } from "../src/operators/linear.ts";
import { layerNorm, rmsNorm } from "../src/operators/norm.ts";
import { sigmoidGate } from "../src/operators/sigmoid-gate.ts";
import { residual } from "../src/operators/residual.ts";
import { stageParameters } from "../src/parameters/parameter-specs.ts";
import { type Communicator, communicatorArena, createCommunicator } from "@trireme/collectives";
import { StageWeights } from "../src/weights/stage-weights.ts";
import { Tape } from "../src/tape/tape.ts";
import { stageForward } from "../src/stage/transformer.ts";
import { Bench } from "./finite-differences.ts";

// Differences are taken in f32 with steps of 2^-7 and 2^-6: rounding of the loss leaves about 1e-3
// of the largest gradient, a wrong formula leaves more than 0.1.
const tolerance = 5e-3;

test.each(["together", "apart"] as const)("linear, with its halves %s", (halves) => {
  const bench = new Bench();
  const [x, w, b] = [bench.input([5, 7]), bench.parameter([7, 3]), bench.parameter([3])];
  expect(bench.worstError((tape) => linear(tape, x, w, { bias: b }), halves)).toBeLessThan(
    tolerance,
  );
});

test("linear with a transposed weight", () => {
  const bench = new Bench();
  const [x, w] = [bench.input([5, 7]), bench.parameter([3, 7])];
  expect(bench.worstError((tape) => linear(tape, x, w, { transposed: true }))).toBeLessThan(
    tolerance,
  );
});

test.each(["together", "apart"] as const)("a low-rank addition, with its halves %s", (halves) => {
  const bench = new Bench();
  const [x, w] = [bench.input([5, 7]), bench.parameter([7, 6])];
  const [a, b] = [bench.parameter([7, 2]), bench.parameter([2, 3])];
  const error = bench.worstError((tape) => {
    const y = linear(tape, x, w);
    addLowRank(tape, x, y, a, b, { start: 2, count: 3 });
    return y;
  }, halves);
  expect(error).toBeLessThan(tolerance);
});

test("layer norm", () => {
  const bench = new Bench();
  const [x, g, b] = [bench.input([4, 9]), bench.parameter([9]), bench.parameter([9])];
  expect(bench.worstError((tape) => layerNorm(tape, x, g, b, { epsilon: 1e-5 }))).toBeLessThan(
    tolerance,
  );
});

test("root-mean-square norm", () => {
  const bench = new Bench();
  const [x, g] = [bench.input([4, 9]), bench.parameter([9])];
  expect(bench.worstError((tape) => rmsNorm(tape, x, g, { epsilon: 1e-5 }))).toBeLessThan(
    tolerance,
  );
});

test("GeLU and SwiGLU", () => {
  const one = new Bench();
  const x = one.input([3, 11]);
  expect(one.worstError((tape) => gelu(tape, x))).toBeLessThan(tolerance);
  const two = new Bench();
  const gateUp = two.input([3, 10]);
  expect(two.worstError((tape) => swiglu(tape, gateUp))).toBeLessThan(tolerance);
});

test.each(["together", "apart"] as const)("a sigmoid gate of each row, halves %s", (halves) => {
  const bench = new Bench();
  const [x, gate] = [bench.input([5, 4]), bench.input([5, 1])];
  expect(bench.worstError((tape) => sigmoidGate(tape, x, gate), halves)).toBeLessThan(tolerance);
});

test("a residual sum whose inputs are used twice", () => {
  const bench = new Bench();
  const [x, branch] = [bench.input([3, 4]), bench.input([3, 4])];
  const error = bench.worstError((tape) => residual(tape, residual(tape, x, branch), x));
  expect(error).toBeLessThan(tolerance);
});

test.each([
  [2, 2, undefined],
  [4, 2, undefined],
  [4, 1, 10_000],
])("attention with %i heads, %i of keys, rotary base %s", (heads, kvHeads, rotaryBase) => {
  const bench = new Bench();
  const [batch, sequence, headDim] = [2, 9, 6];
  const qkv = bench.input([batch * sequence, (heads + 2 * kvHeads) * headDim]);
  const before = bench.values(qkv.value).slice();
  const pieces = [{ start: 0, count: sequence }];
  const shape = { batch, pieces, heads, kvHeads, headDim, rotaryBase, window: 0 };
  const error = bench.worstError((tape) => {
    // The operator turns queries and keys in place: each run starts from a copy.
    const copy = residual(tape, qkv, {
      value: zeros(bench, qkv.value.dims),
      needsGradient: false,
      gradient: undefined,
    });
    return attention(tape, copy, shape).y;
  });
  expect(error).toBeLessThan(tolerance);
  expect(bench.values(qkv.value)).toEqual(before);
});

test("embedding of tokens, repeated ones too, and positions", () => {
  const bench = new Bench();
  const [table, positions] = [bench.parameter([6, 5]), bench.parameter([4, 5])];
  const ids = bench.ids([0, 5, 5, 2, 3, 0, 5, 1]);
  const error = bench.worstError((tape) =>
    embedding(tape, ids, 2, [{ start: 0, count: 4 }], table, {
      table: positions,
      adds: true,
      learns: true,
    }),
  );
  expect(error).toBeLessThan(tolerance);
});

test("cross entropy: its loss and gradient are those of the formula", () => {
  const bench = new Bench();
  const logits = bench.input([3, 5]);
  const rows = bench.values(logits.value).slice();
  const targets = [4, -1, 0];
  const tape = new Tape(bench.kernels, bench.pool);
  const loss = crossEntropy(tape, logits, bench.ids(targets), 0.25);
  tape.backward();
  let expected = 0;
  const gradient = [0, 1, 2].flatMap((row) => {
    const values = [...rows.subarray(row * 5, row * 5 + 5)];
    const total = values.reduce((sum, v) => sum + Math.exp(v), 0);
    const target = targets[row]!;
    if (target < 0) return values.map(() => 0);
    expected += Math.log(total) - values[target]!;
    return values.map((v, i) => 0.25 * (Math.exp(v) / total - (i === target ? 1 : 0)));
  });
  expect(loss).toBeCloseTo(expected, 5);
  bench.values(logits.gradient!).forEach((g, i) => expect(g).toBeCloseTo(gradient[i]!, 5));
});

const llama = {
  position: "rotary",
  norm: "rmsnorm",
  activation: "swiglu",
  bias: false,
  tied: false,
  kvHeads: 1,
} as const;

/** A part of each head is turned, and the head has a bias. */
const neox = {
  position: "rotary",
  rotaryFraction: 0.5,
  block: "parallel",
  sharedNorm: false,
  tied: false,
  headBias: true,
} as const;
/** Queries and keys are normalised, and the output projection alone has a bias. */
const qwen = { ...llama, qkNorm: "head", outputBias: true } as const;

/** As DeepSeek-V3, and, without a latent of queries, as DeepSeek-V2-Lite. */
const latent = {
  ...llama,
  kvHeads: 2,
  latent: { queryRank: 5, keyValueRank: 6, nopeDim: 4, ropeDim: 2, valueDim: 3 },
} as const;
const lite = { ...latent, latent: { ...latent.latent, queryRank: 0, valueDim: 6 } } as const;

test.each([
  ["GPT", {}, "none", "together"],
  ["Llama", llama, "none", "together"],
  ["GPT", {}, "selective", "together"],
  ["Llama", llama, "selective", "apart"],
  ["GPT", {}, "full", "apart"],
  ["Llama", llama, "full", "together"],
  ["NeoX", neox, "none", "together"],
  ["Qwen 3", qwen, "selective", "apart"],
  ["DeepSeek", latent, "none", "together"],
  ["DeepSeek", latent, "selective", "apart"],
  ["DeepSeek", lite, "full", "apart"],
] as const)("a whole %s stack %j, recompute %s, halves %s", (_, form, recompute, halves) => {
  const model = defineModel({
    layers: 2,
    hidden: 8,
    heads: 2,
    vocab: 7,
    context: 5,
    ffn: 12,
    ...form,
  });
  const plan = definePlan(model, { globalBatch: 2, microbatch: 2, sequence: 5, precision: "fp32" });
  const bench = new Bench();
  const [stage] = stages(model, plan) as [ReturnType<typeof stages>[number]];
  const lone = loneCommunicator();
  const parameters = new StageWeights({
    pool: bench.pool,
    kernels: bench.kernels,
    specs: stageParameters(model, stage),
    seed: 3,
    replicas: lone,
    expertReplicas: lone,
    peers: lone,
    expertPeers: lone,
    zero: 0,
    tensor: undefined,
    sequenceParallel: false,
    tableIsCopy: false,
    isFirstOfExpert: true,
  });
  // Fresh weights are so small that differences drown in rounding.
  for (const parameter of parameters.buckets.flatMap((bucket) => bucket.parameters)) {
    const { value, name } = parameter;
    if (!/ln_|norm/.test(name)) bench.values(value).forEach((v, i, all) => (all[i] = v * 15));
    bench.parameters.push(parameter);
  }
  const tokens = bench.ids([0, 1, 2, 3, 4, 6, 6, 5, 0, 1]);
  const error = bench.worstError(
    (tape) =>
      stageForward(
        tape,
        { model, stage, parameters, recompute },
        { batch: 2, pieces: [{ start: 0, count: 5 }], tokens, hidden: undefined },
      ),
    halves,
  );
  expect(error).toBeLessThan(tolerance);
});

/** The communicator of a rank without others. */
function loneCommunicator(): Communicator {
  const now = (): number => performance.now() / 1e3;
  return createCommunicator({ memory: communicatorArena(1), rank: 0, ranks: 1, now });
}

function zeros(
  bench: Bench,
  dims: readonly number[],
): { pointer: number; dims: readonly number[]; size: number } {
  const tensor = bench.pool.allocate(dims);
  bench.values(tensor).fill(0);
  return tensor;
}

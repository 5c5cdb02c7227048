import { defineModel, definePlan, stages } from "@trireme/workload";
import { expect, test } from "vitest";
import { gelu, swiglu } from "../src/operators/activation.ts";
import { attention } from "../src/operators/attention.ts";
import { crossEntropy } from "../src/operators/cross-entropy.ts";
import { embedding } from "../src/operators/embedding.ts";
import { linear } from "../src/operators/linear.ts";
import { layerNorm, rmsNorm } from "../src/operators/norm.ts";
import { residual } from "../src/operators/residual.ts";
import { stageParameters } from "../src/parameter-specs.ts";
import { ParameterSet } from "../src/parameters.ts";
import { Tape } from "../src/tape.ts";
import { stageForward } from "../src/transformer.ts";
import { Bench } from "./finite-differences.ts";

// Differences are taken in f32 with steps of 2^-7 and 2^-6: rounding of the loss leaves about 1e-3
// of the largest gradient, a wrong formula leaves more than 0.1.
const tolerance = 5e-3;

test.each(["together", "apart"] as const)("linear, with its halves %s", (halves) => {
  const bench = new Bench();
  const [x, w, b] = [bench.input([5, 7]), bench.parameter([7, 3]), bench.parameter([3])];
  expect(bench.worstError((tape) => linear(tape, x, w, b), halves)).toBeLessThan(tolerance);
});

test("linear with a transposed weight", () => {
  const bench = new Bench();
  const [x, w] = [bench.input([5, 7]), bench.parameter([3, 7])];
  expect(bench.worstError((tape) => linear(tape, x, w, undefined, true))).toBeLessThan(tolerance);
});

test("layer norm", () => {
  const bench = new Bench();
  const [x, g, b] = [bench.input([4, 9]), bench.parameter([9]), bench.parameter([9])];
  expect(bench.worstError((tape) => layerNorm(tape, x, g, b, 1e-5))).toBeLessThan(tolerance);
});

test("root-mean-square norm", () => {
  const bench = new Bench();
  const [x, g] = [bench.input([4, 9]), bench.parameter([9])];
  expect(bench.worstError((tape) => rmsNorm(tape, x, g, 1e-5))).toBeLessThan(tolerance);
});

test("GeLU and SwiGLU", () => {
  const one = new Bench();
  const x = one.input([3, 11]);
  expect(one.worstError((tape) => gelu(tape, x))).toBeLessThan(tolerance);
  const two = new Bench();
  const gateUp = two.input([3, 10]);
  expect(two.worstError((tape) => swiglu(tape, gateUp))).toBeLessThan(tolerance);
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
  const shape = { batch, sequence, heads, kvHeads, headDim, rotaryBase };
  const error = bench.worstError((tape) => {
    // The operator turns queries and keys in place: each run starts from a copy.
    const copy = residual(tape, qkv, {
      value: zeros(bench, qkv.value.dims),
      needsGradient: false,
      gradient: undefined,
    });
    return attention(tape, copy, shape);
  });
  expect(error).toBeLessThan(tolerance);
  expect(bench.values(qkv.value)).toEqual(before);
});

test("embedding of tokens, repeated ones too, and positions", () => {
  const bench = new Bench();
  const [table, positions] = [bench.parameter([6, 5]), bench.parameter([4, 5])];
  const ids = bench.ids([0, 5, 5, 2, 3, 0, 5, 1]);
  const error = bench.worstError((tape) => embedding(tape, ids, 2, 4, table, positions));
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

test.each([
  ["GPT", {}],
  [
    "Llama",
    {
      position: "rotary",
      norm: "rmsnorm",
      activation: "swiglu",
      bias: false,
      tied: false,
      kvHeads: 1,
    },
  ],
] as const)("a whole %s stack, loss to embedding", (_, form) => {
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
  const parameters = new ParameterSet(bench.pool, stageParameters(model, stage), 3);
  // Fresh weights are so small that differences drown in rounding.
  for (const { value, name } of parameters.list) {
    if (!name.includes("ln_")) bench.values(value).forEach((v, i, all) => (all[i] = v * 15));
    bench.parameters.push(parameters.get(name));
  }
  const tokens = bench.ids([0, 1, 2, 3, 4, 6, 6, 5, 0, 1]);
  const error = bench.worstError((tape) =>
    stageForward(tape, model, stage, parameters, {
      batch: 2,
      sequence: 5,
      tokens,
      hidden: undefined,
    }),
  );
  expect(error).toBeLessThan(tolerance);
});

function zeros(
  bench: Bench,
  dims: readonly number[],
): { pointer: number; dims: readonly number[]; size: number } {
  const tensor = bench.pool.allocate(dims);
  bench.values(tensor).fill(0);
  return tensor;
}

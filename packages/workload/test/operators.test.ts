import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type CollectiveOperator,
  type Model,
  type Operator,
  type Plan,
  boundaryBytes,
  defineModel,
  definePlan,
  model,
  modelFlops,
  stageOperators,
  stageParameters,
  stages,
} from "@trireme/workload";

function everyOperator(m: Model, p: Plan): Operator[] {
  return stages(m, p).flatMap((s) => Array.from(stageOperators(m, p, s).operators));
}

function flops(operators: readonly Operator[], kinds: readonly string[], pass?: string): number {
  return operators
    .filter((o) => kinds.includes(o.kind) && (pass === undefined || o.pass === pass))
    .reduce((sum, o) => sum + o.flops * o.count, 0);
}

const small = (o: Partial<Model>): Model =>
  defineModel({ layers: 6, hidden: 64, heads: 8, kvHeads: 4, vocab: 120, context: 64, ...o });

test("attention stays within the documents of a packed sample", () => {
  const m = model("llama3-8b");
  const of = (o: Partial<Plan>): number => {
    const p = definePlan(m, { globalBatch: 2, microbatch: 2, ...o });
    return flops(everyOperator(m, p), ["attention"], "forward");
  };
  // Of n tokens n (n + 1) / 2 pairs are left: sixteen documents of 512 have 16 × 513 of 8193 parts.
  expect(of({ document: 512 }) / of({})).toBeCloseTo(513 / 8193, 12);
  expect(of({ document: 8192 })).toBe(of({}));
  const exact = (p: { sequence: number; document?: number }): number => modelFlops(m, p, "exact");
  expect(exact({ sequence: 8192, document: 512 })).toBe(exact({ sequence: 512 }));
  expect(exact({ sequence: 8192, document: 8192 })).toBe(exact({ sequence: 8192 }));
});

test("FLOPs are conserved by every split", () => {
  fc.assert(
    fc.property(
      fc.record({
        tp: fc.constantFrom(1, 2, 4),
        pp: fc.constantFrom(1, 2, 3),
        vpp: fc.constantFrom(1, 2),
        dp: fc.constantFrom(1, 2),
        microbatch: fc.constantFrom(1, 2, 3),
        sequenceParallel: fc.boolean(),
        flashAttention: fc.boolean(),
        recompute: fc.constantFrom(
          "none" as const,
          "selective" as const,
          "operators" as const,
          "full" as const,
        ),
        cp: fc.constantFrom(1, 2, 4),
        zero: fc.constantFrom(0 as const, 1 as const, 2 as const, 3 as const),
      }),
      fc.constantFrom("gelu" as const, "swiglu" as const),
      (o, activation) => {
        fc.pre(o.pp > 1 || o.vpp === 1);
        const m = small({ activation });
        const globalBatch = o.dp * o.microbatch * o.pp;
        const p = definePlan(m, { ...o, globalBatch });
        const whole = definePlan(m, { ...o, tp: 1, pp: 1, vpp: 1, dp: 1, cp: 1, globalBatch });
        const [split, one] = [everyOperator(m, p), everyOperator(m, whole)];
        const matrix = ["gemm", "attention", "activation", "loss", "embedding"];
        for (const pass of ["forward", "recompute", "input-gradient", "weight-gradient"]) {
          const shared = o.tp * o.cp * flops(split, matrix, pass);
          // The embedding's additions are done by whichever rank holds the row: counted on each.
          const embedding = (o.tp - 1) * flops(one, ["embedding"], pass);
          expect(shared).toBe(flops(one, matrix, pass) + embedding);
          const norms =
            o.cp * (o.sequenceParallel ? o.tp : 1) * flops(split, ["norm", "add"], pass);
          expect(norms).toBe(flops(one, ["norm", "add"], pass));
        }
      },
    ),
  );
});

test("products and plain attention do exactly the FLOPs of the model convention", () => {
  // modelFlops counts 6N over all parameters; norms, biases and positions multiply element by element.
  for (const m of [
    small({}),
    small({ activation: "swiglu", norm: "rmsnorm", bias: false, position: "rotary", tied: false }),
  ]) {
    const p = definePlan(m, { globalBatch: 2, microbatch: 2, flashAttention: false });
    const [stage] = stages(m, p);
    const { operators } = stageOperators(m, p, stage!);
    const elementwise =
      m.layers *
        (2 * (m.norm === "layernorm" ? 2 : 1) * m.hidden +
          (m.bias ? 128 + m.ffn + 2 * m.hidden : 0)) +
      (m.norm === "layernorm" ? 2 : 1) * m.hidden +
      (m.position === "learned" ? m.context * m.hidden : 0);
    const tokens = 2 * p.sequence;
    expect(flops(operators, ["gemm", "attention"])).toBe(
      tokens * (modelFlops(m, p) - 6 * elementwise),
    );
  }
});

test("flash attention skips the tiles above the diagonal", () => {
  const m = model("llama3-8b");
  const attention = (flashAttention: boolean): number =>
    flops(
      everyOperator(m, definePlan(m, { globalBatch: 1, flashAttention })),
      ["attention"],
      "forward",
    );
  expect(attention(true) / attention(false)).toBeCloseTo((8192 + 1) / (2 * 8192), 12);
});

test("the forward pass of a layer is the documented list", () => {
  const m = small({ layers: 1, activation: "swiglu" });
  const p = definePlan(m, { tp: 2, globalBatch: 3, microbatch: 3, sequenceParallel: true });
  const forward = everyOperator(m, p).filter((o) => o.pass === "forward");
  expect(forward.map((o) => `${o.kind} ${o.shape.join("x")}`)).toEqual([
    "embedding 192x64x60",
    "norm 96x64",
    "gemm 1x192x64x64",
    "attention 3x4x2x64x8",
    "gemm 1x192x64x32",
    "add 96x64",
    "norm 96x64",
    "gemm 1x192x256x64",
    "activation 192x128",
    "gemm 1x192x64x128",
    "add 96x64",
    "norm 96x64",
    "gemm 1x192x60x64",
    "loss 192x60",
  ]);
});

test("copies are sorted where they arrive; a token that travels once is copied there and not sorted", () => {
  const experts = { count: 8, active: 2, ffn: 32 };
  const m = defineModel({ layers: 1, hidden: 64, heads: 8, vocab: 120, context: 64, experts });
  const forms = (o: Partial<Plan>): string[] =>
    everyOperator(m, definePlan(m, { dp: 4, globalBatch: 4, ...o }))
      .filter((x) => x.kind === "permutation" && x.pass === "forward")
      .map((x) => x.form);
  expect(forms({ ep: 4 })).toEqual(["scatter", "sort", "sort", "combine"]);
  expect(forms({ ep: 4, dispatch: "unique" })).toEqual(["scatter", "combine"]);
  expect(forms({ ep: 1, dispatch: "unique" })).toEqual(["scatter", "combine"]);
});

test("a cast reads its operand twice and writes it twice; in 4 bits thrice, with a scale to 16 numbers", () => {
  const m = small({ layers: 1 });
  const each = (matrixPrecision: "fp8" | "int8" | "fp4"): number[] =>
    everyOperator(m, definePlan(m, { globalBatch: 1, matrixPrecision }))
      .filter((o) => o.form.startsWith("cast-"))
      .map((o) => o.bytes / (o.shape[0]! * o.shape[1]!));
  expect(new Set(each("fp8"))).toEqual(new Set([2 * 2 + 2]));
  // In 8-bit integers weights are cast beside, forward and backward.
  expect(new Set(each("int8"))).toEqual(new Set([2 * 2 + 2]));
  expect(each("int8").length).toBe(2 * each("fp8").length);
  expect(new Set(each("fp4"))).toEqual(new Set([3 * 2 + 2 * (1 / 2 + 1 / 16)]));
});

test("equal keys are equal kernels", () => {
  const m = model("llama3-8b");
  const seen = new Map<string, string>();
  for (const tp of [1, 2, 8]) {
    for (const flashAttention of [true, false]) {
      const p = definePlan(m, { tp, pp: 4, globalBatch: 4, recompute: "full", flashAttention });
      for (const o of everyOperator(m, p)) {
        const what = JSON.stringify([o.kind, o.form, o.shape, o.flops, o.bytes]);
        expect(seen.get(o.key) ?? what).toBe(what);
        seen.set(o.key, what);
      }
    }
  }
});

test("full recomputation repeats the layers' forward work once, selective the attention's", () => {
  const m = small({});
  const work = (recompute: Plan["recompute"], pass: string): number =>
    flops(
      everyOperator(m, definePlan(m, { globalBatch: 1, recompute })),
      ["gemm", "attention", "norm", "add", "activation"],
      pass,
    );
  const head = 7 * 64 * 64 + 2 * 64 * 64 * 120;
  expect(work("full", "recompute")).toBe(work("full", "forward") - head);
  expect(work("none", "recompute")).toBe(0);
  const attention = flops(
    everyOperator(m, definePlan(m, { globalBatch: 1 })),
    ["attention"],
    "forward",
  );
  expect(work("selective", "recompute")).toBe(attention);
});

/** Elements that a ring moves per rank: 2(t−1)/t of an all-reduce's buffer, (t−1)/t of the others. */
function volume(
  collectives: readonly CollectiveOperator[],
  axis: string,
  size: number,
  pass: readonly string[],
): number {
  return collectives
    .filter((c) => c.axis === axis && pass.includes(c.pass))
    .reduce(
      (sum, c) => sum + c.bytes * c.count * (c.kind === "all-reduce" ? 2 : 1) * ((size - 1) / size),
      0,
    );
}

test("tensor-parallel volume is the published 8bsh(t-1)/t elements a layer", () => {
  const m = model("gpt3-175b");
  for (const sequenceParallel of [false, true]) {
    const p = definePlan(m, { tp: 8, pp: 3, globalBatch: 3, microbatch: 1, sequenceParallel });
    const middle = stages(m, p)[1]!;
    const { collectives } = stageOperators(m, p, middle);
    const bytes = volume(collectives, "tp", 8, ["forward", "input-gradient"]);
    // Sequence parallelism moves the same: an all-reduce is a reduce-scatter and an all-gather.
    expect(bytes / middle.layers / 2).toBe((8 * 2048 * 12_288 * 7) / 8);
  }
});

test("one rank communicates with nobody", () => {
  const m = model("gpt2");
  const p = definePlan(m, { globalBatch: 1, sequenceParallel: true, zero: 3 });
  expect(stageOperators(m, p, stages(m, p)[0]!).collectives).toEqual([]);
});

test("ZeRO 1 moves what an all-reduce moves, ZeRO 3 half as much again", () => {
  const m = model("llama3-8b");
  const moved = (zero: Plan["zero"]): number => {
    const p = definePlan(m, { dp: 4, globalBatch: 4, zero, gradientPrecision: "bf16" });
    return volume(stageOperators(m, p, stages(m, p)[0]!).collectives, "dp", 4, [
      "forward",
      "input-gradient",
      "weight-gradient",
      "update",
    ]);
  };
  expect(moved(1)).toBe(moved(0));
  expect(moved(3)).toBe(1.5 * moved(0));
});

test("ZeRO shares the optimizer out, rounded up", () => {
  const m = small({});
  const p = definePlan(m, { dp: 7, globalBatch: 7, zero: 1 });
  const [stage] = stages(m, p);
  const optimizer = stageOperators(m, p, stage!).operators.find((o) => o.kind === "optimizer")!;
  expect(optimizer.shape).toEqual([Math.ceil(stageParameters(m, p, stage!).total / 7)]);
});

test("a boundary is b·s·h elements, split over tp by sequence parallelism or scatter/gather", () => {
  const m = model("gpt3-175b");
  const at = (o: Partial<Plan>): number =>
    boundaryBytes(m, definePlan(m, { tp: 8, pp: 8, globalBatch: 8, ...o }));
  expect(at({})).toBe(2 * 2048 * 12_288);
  expect(at({ sequenceParallel: true })).toBe(at({}) / 8);
  expect(at({ scatterGather: true })).toBe(at({}) / 8);
  expect(at({ precision: "fp32" })).toBe(2 * at({}));
});

test("shapes beyond 2^31 stay exact", () => {
  const m = model("gpt3-175b");
  const p = definePlan(m, { globalBatch: 64, microbatch: 64 });
  const fc1 = everyOperator(m, p).find((o) => o.kind === "gemm" && o.shape[2] === 4 * 12_288)!;
  expect(fc1.flops).toBe(2 * 64 * 2048 * 12_288 * 49_152);
});

test("latent attention puts keys together from each head's own part and the one that is rotated", () => {
  const latent = { queryRank: 24, keyValueRank: 16, nopeDim: 8, ropeDim: 4, valueDim: 6 };
  const m = small({ layers: 1, kvHeads: 8, position: "rotary", latent });
  const [once] = stages(m, definePlan(m, { globalBatch: 1 }));
  const assembled = (p: Plan): Operator[] =>
    Array.from(stageOperators(m, p, once!).operators).filter((o) => o.form === "latent");
  const alone = assembled(definePlan(m, { globalBatch: 1 }));
  expect(alone.map((o) => o.pass)).toEqual(["forward", "input-gradient"]);
  // Reads 8 + 6 numbers of each head, writes 12 + 6.
  for (const o of alone) expect(o.bytes).toBe(2 * 64 * 8 * (8 + 6 + 12 + 6));
  const split = assembled(definePlan(m, { globalBatch: 1, tp: 2 }));
  expect(split.map((o) => o.bytes)).toEqual(alone.map((o) => o.bytes / 2));
  const full = assembled(definePlan(m, { globalBatch: 1, recompute: "full" }));
  expect(full.map((o) => o.pass)).toContain("recompute");
});

test("biases of experts are weighted and added in 32 bits, and bounds read and write gate and up", () => {
  const oss = model("gpt-oss-20b");
  const plan = definePlan(oss, { dp: 8, ep: 8, globalBatch: 8, sequence: 1024 });
  const operators = stageOperators(oss, plan, stages(oss, plan)[0]!).operators;
  const rows = 4 * 1024;
  const biases = operators.filter((o) => o.form === "expert-bias");
  expect(biases.map((o) => [o.pass, o.shape, o.bytes / (rows * 2880)])).toEqual([
    ["forward", [rows, 2880, 4], 28],
    ["input-gradient", [rows, 2880, 4], 40],
    ["forward", [rows, 2880, 4], 28],
    ["input-gradient", [rows, 2880, 4], 40],
  ]);
  const cut = operators.filter((o) => o.form === "swiglu-clamped").slice(0, 2);
  expect(cut.map((o) => o.bytes / (rows * 2880))).toEqual([6 + 16, 10 + 20]);
});

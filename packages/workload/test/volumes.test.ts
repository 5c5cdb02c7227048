/** What ranks move, against the published formulas; volumes in elements where the paper counts elements. */
import { expect, test } from "vitest";
import {
  type CollectiveOperator,
  type Model,
  type Pass,
  type Plan,
  type PlanOptions,
  boundaryBytes,
  defineModel,
  definePlan,
  expertReplicas,
  model,
  stageOperators,
  stageParameters,
  stages,
} from "@trireme/workload";

/** Collectives of the middle stage of three, which has layers alone. */
function collectives(m: Model, o: PlanOptions): readonly CollectiveOperator[] {
  const p = definePlan(m, { pp: 3, ...o });
  return stageOperators(m, p, stages(m, p)[1]!).collectives;
}

/** Bytes that a rank sends: 2(n−1)/n of an all-reduce's buffer, (n−1)/n of the others'. */
function sent(
  list: readonly CollectiveOperator[],
  axis: CollectiveOperator["axis"],
  n: number,
  ...passes: readonly Pass[]
): number {
  return list
    .filter((c) => c.axis === axis && passes.includes(c.pass))
    .reduce(
      (sum, c) => sum + (c.bytes * c.count * (c.kind === "all-reduce" ? 2 : 1) * (n - 1)) / n,
      0,
    );
}

// MegaScale-MoE's 352B model: 60 layers, 32 experts, 3 of a token, 4 query heads a key head.
const moe = defineModel({ ...model("megascale-moe-352b"), experts: { count: 32, active: 3 } });
const [b, s, h, n] = [1, 8192, 4096, 8] as const;
const batch = { microbatch: b, globalBatch: 24 };
/** Layers of a stage, and bytes of an element. */
const each = 20 * 2;

test("a dense layer under tensor parallelism moves 8bsh(t-1)/t elements, in all forms", () => {
  const gpt = model("gpt3-175b");
  for (const sequenceParallel of [false, true]) {
    for (const recompute of ["none", "full"] as const) {
      const list = collectives(gpt, { tp: 8, globalBatch: 3, sequenceParallel, recompute });
      const volume = sent(list, "tp", 8, "forward", "input-gradient") / (32 * 2);
      expect(volume).toBe((8 * 2048 * 12_288 * 7) / 8);
      // Full recomputation repeats forward's: half as much again (SC'21, section 3.2).
      const again = sent(list, "tp", 8, "recompute") / (32 * 2);
      expect(again).toBe(recompute === "full" ? volume / 2 : 0);
    }
  }
});

test("MegaScale-MoE: attention under tensor parallelism moves 2bsh(n-1)/n forward", () => {
  const list = collectives(moe, { tp: n, sequenceParallel: true, etp: 1, ep: n, ...batch });
  // Routed blocks gather nothing over tp: what is left is attention's.
  expect(sent(list, "tp", n, "forward") / each).toBe((2 * b * s * h * (n - 1)) / n);
});

test("MegaScale-MoE: attention under sequence parallelism moves 2bsh(n-1)/n · (2+2/m)/n, sent and received", () => {
  const list = collectives(moe, { cp: n, contextExchange: "all-to-all", ep: n, ...batch });
  const m = moe.heads / moe.kvHeads;
  const formula = ((2 * b * s * h * (n - 1)) / n) * ((2 + 2 / m) / n);
  // What a rank sends it also receives; the paper's tensor-parallel volume counts one direction.
  expect((2 * sent(list, "cp", n, "forward")) / each).toBe(formula);
  expect(sent(list, "cp", n, "input-gradient")).toBe(sent(list, "cp", n, "forward"));
});

test("MegaScale-MoE: experts under expert parallelism move (2k/n) · bsh(n-1)/n, under tensor parallelism 2bsh(n-1)/n", () => {
  const k = 3;
  const spread = collectives(moe, { cp: n, contextExchange: "all-to-all", ep: n, ...batch });
  expect(sent(spread, "ep", n, "forward") / each).toBe(((2 * k) / n) * ((b * s * h * (n - 1)) / n));
  const gathered = collectives(moe, {
    cp: n,
    contextExchange: "all-to-all",
    ep: n,
    dispatch: "all-gather",
    ...batch,
  });
  // Every token to every rank and sums back: as much as splitting each expert, whatever top-k is.
  expect(sent(gathered, "ep", n, "forward") / each).toBe((2 * b * s * h * (n - 1)) / n);
});

test("an expert that is split gathers its rows and scatters its sums", () => {
  const list = collectives(moe, { tp: n, sequenceParallel: true, etp: n, ep: 1, ...batch });
  const k = 3;
  const volume = sent(list, "etp", n, "forward") / each;
  expect(volume).toBe((2 * k * b * s * h * (n - 1)) / n);
});

test("deduplicated dispatch moves a token once to a rank: n(1 - (1-1/n)^k) of k copies", () => {
  const of = (dispatch: Plan["dispatch"]): number => {
    const list = collectives(moe, {
      cp: n,
      contextExchange: "all-to-all",
      ep: n,
      dispatch,
      ...batch,
    });
    return sent(list, "ep", n, "forward");
  };
  expect(of("unique") / of("all-to-all")).toBeCloseTo((n * (1 - (1 - 1 / n) ** 3)) / 3, 12);
});

test("a capacity limits what travels", () => {
  const of = (o: Partial<Plan>): number =>
    sent(
      collectives(moe, { cp: n, contextExchange: "all-to-all", ep: n, ...batch, ...o }),
      "ep",
      n,
      "forward",
    );
  expect(of({ expertCapacity: 1 })).toBe(of({}));
  expect(of({ expertCapacity: 1.25 })).toBe(1.25 * of({}));
});

test("rows in FP8 travel with a scale for each token, and back with one for each channel of 128", () => {
  const of = (dispatchPrecision: Plan["dispatchPrecision"], pass: "forward" | "input-gradient") =>
    sent(
      collectives(moe, {
        ep: n,
        dp: n,
        ...batch,
        ...(dispatchPrecision === undefined ? {} : { dispatchPrecision }),
      }),
      "ep",
      n,
      pass,
    );
  const width = 2 * moe.hidden;
  expect(of("bf16", "forward")).toBe(of(undefined, "forward"));
  expect(of("fp32", "forward")).toBe(2 * of(undefined, "forward"));
  const ratio = (pass: "forward" | "input-gradient"): number =>
    of("fp8", pass) / of(undefined, pass);
  expect(ratio("forward")).toBeCloseTo((moe.hidden + 4) / width, 12);
  expect(ratio("input-gradient")).toBeCloseTo((moe.hidden + moe.hidden / 32) / width, 12);
});

test("a ring of context parallelism moves keys and values, and back their gradients", () => {
  const llama = model("llama3-8b");
  const list = collectives(llama, { cp: 4, globalBatch: 3 });
  const stage = stages(llama, definePlan(llama, { pp: 3, cp: 4, globalBatch: 3 }))[1]!;
  // 2 · s · kvHeads · headDim elements of bf16, of which a rank has a quarter.
  const keysAndValues = 2 * 8192 * 8 * 128 * 2;
  expect(sent(list, "cp", 4, "forward") / stage.layers).toBe((keysAndValues * 3) / 4);
  expect(sent(list, "cp", 4, "input-gradient")).toBe(2 * sent(list, "cp", 4, "forward"));
});

test("ZeRO moves 2Ψ(d-1)/d up to stage 2 and 3Ψ(d-1)/d at stage 3, experts over their own replicas", () => {
  // Ψ parameters in 2 bytes, gradients in the same (arXiv 1910.02054, section 7).
  const small = defineModel({ ...moe, layers: 6, name: "small" });
  const passes = ["forward", "input-gradient", "weight-gradient", "update"] as const;
  for (const [m, o] of [
    [model("llama3-8b"), { dp: 8 }],
    [small, { dp: 8, ep: 4 }],
  ] as const) {
    for (const [zero, times] of [
      [0, 2],
      [1, 2],
      [2, 2],
      [3, 3],
    ] as const) {
      const options = { ...o, zero, globalBatch: 24, gradientPrecision: "bf16" as const };
      const p = definePlan(m, { pp: 3, ...options });
      const held = stageParameters(m, p, stages(m, p)[1]!);
      const list = collectives(m, options);
      const dense = 2 * (held.total - held.experts);
      expect(sent(list, "dp", 8, ...passes)).toBeCloseTo((times * dense * 7) / 8, 3);
      const d = expertReplicas(p);
      const routed = m.experts === undefined ? 0 : (times * 2 * held.experts * (d - 1)) / d;
      expect(sent(list, "edp", d, ...passes)).toBeCloseTo(routed, 3);
    }
  }
});

test("ZeRO 1 that sums all gradients in 32 bits moves 10 bytes a parameter, not 4", () => {
  const m = model("llama3-8b");
  const o = { dp: 8, zero: 1, globalBatch: 24, gradientPrecision: "bf16" } as const;
  const whole = { ...o, reductionPrecision: "fp32", gradientExchange: "all-reduce" } as const;
  const held = stageParameters(
    m,
    definePlan(m, { pp: 3, ...o }),
    stages(m, definePlan(m, { pp: 3, ...o }))[1]!,
  ).total;
  // Each way: an all-reduce of 4 bytes counts twice, a gather of 2 once.
  expect(sent(collectives(m, o), "dp", 8, "update")).toBeCloseTo((4 * held * 7) / 8, 3);
  expect(sent(collectives(m, whole), "dp", 8, "update")).toBeCloseTo((10 * held * 7) / 8, 3);
});

test("experts' gradients travel over the ranks that hold the same experts alone", () => {
  const p = definePlan(moe, { ...batch, pp: 3, dp: 8, ep: 8 });
  const list = stageOperators(moe, p, stages(moe, p)[1]!).collectives;
  expect(list.some((c) => c.axis === "edp")).toBe(false);
  expect(list.some((c) => c.axis === "dp")).toBe(true);
});

test("adapters alone are reduced, and a frozen encoder not at all", () => {
  const m = defineModel({ ...model("llama2-7b"), adapter: { rank: 8 } });
  const list = collectives(m, { dp: 4, globalBatch: 12 });
  const p = definePlan(m, { pp: 3, dp: 4, globalBatch: 12 });
  const { trainable, total } = stageParameters(m, p, stages(m, p)[1]!);
  expect(list).toEqual([
    { kind: "all-reduce", axis: "dp", pass: "update", bytes: 4 * trainable, count: 1 },
  ]);
  expect(trainable / total).toBeLessThan(0.001);
});

test("frozen matrices have no weight gradients to gather inputs for", () => {
  const m = model("llama2-7b");
  const o = { tp: 4, sequenceParallel: true, globalBatch: 3 };
  const frozen = collectives(defineModel({ ...m, adapter: { rank: 8 } }), o);
  expect(sent(frozen, "tp", 4, "weight-gradient")).toBe(0);
  for (const pass of ["forward", "input-gradient"] as const) {
    expect(sent(frozen, "tp", 4, pass)).toBe(sent(collectives(m, o), "tp", 4, pass));
  }
  expect(sent(collectives(m, o), "tp", 4, "weight-gradient")).toBeGreaterThan(0);
});

test("an encoder under tensor parallelism reduces twice a layer, backward only where it is trained", () => {
  const vision = model("llava-1.5-7b");
  const volume = (frozen: boolean, pass: Pass): number => {
    const m = defineModel({ ...vision, encoders: vision.encoders.map((e) => ({ ...e, frozen })) });
    const text = defineModel({ ...vision, encoders: [] });
    const of = (x: Model): number => {
      const p = definePlan(x, { tp: 8, pp: 2, globalBatch: 2 });
      return sent(stageOperators(x, p, stages(x, p)[0]!).collectives, "tp", 8, pass);
    };
    return of(m) - of(text);
  };
  const forward = (24 * 2 * 2 * 576 * 1024 * 2 * 7) / 8;
  expect(volume(true, "forward")).toBe(forward);
  expect(volume(true, "input-gradient")).toBe(0);
  expect(volume(false, "input-gradient")).toBe(forward);
});

test("a boundary is bsh elements, split where every rank sends its part", () => {
  const gpt = model("gpt3-175b");
  const of = (o: Partial<Plan>): number =>
    boundaryBytes(gpt, definePlan(gpt, { tp: 8, pp: 8, globalBatch: 8, ...o }));
  expect(of({})).toBe(2 * 2048 * 12_288);
  expect(of({ sequenceParallel: true, cp: 2 })).toBe(of({}) / 16);
});

import { expect, test } from "vitest";
import {
  type Adapter,
  type Operator,
  type Pass,
  type Plan,
  defineModel,
  definePlan,
  model,
  stageOperators,
  stages,
} from "@trireme/workload";

const llama = model("llama2-7b");

function operators(adapter: Partial<Adapter> | undefined, o: Partial<Plan> = {}): Operator[] {
  const m = defineModel({
    ...llama,
    ...(adapter === undefined ? {} : { adapter: { rank: 8, ...adapter } }),
  });
  const p = definePlan(m, { globalBatch: 1, ...o });
  return [...stageOperators(m, p, stages(m, p)[0]!).operators];
}

function bytes(list: readonly Operator[], form: string, pass?: Pass): number {
  return list
    .filter((o) => o.form.startsWith(form) && (pass === undefined || o.pass === pass))
    .reduce((sum, o) => sum + o.bytes * o.count, 0);
}

test("a frozen model's backward is one product for each of forward's, beside thin ones", () => {
  const products = (list: readonly Operator[], pass: Pass): number =>
    list
      .filter((o) => o.kind === "gemm" && o.pass === pass)
      .reduce((sum, o) => sum + o.flops * o.count, 0);
  const [all, frozen] = [operators(undefined), operators({})];
  expect(products(all, "weight-gradient")).toBe(products(all, "forward"));
  expect(products(frozen, "input-gradient")).toBe(products(frozen, "forward"));
  // Rank 8 beside two of a layer's seven matrices of 4096 features.
  expect(products(frozen, "weight-gradient") / products(frozen, "forward")).toBeLessThan(0.001);
});

test("operands of frozen 8-bit products are written once, not transposed as well", () => {
  const o = { matrixPrecision: "fp8" } as const;
  const [all, frozen] = [operators(undefined, o), operators({}, o)];
  // Two reads of 2 bytes, and one or two writes of a byte.
  expect(bytes(frozen, "cast-fp8") / bytes(all, "cast-fp8")).toBeCloseTo(5 / 6, 12);
  // In 4 bits the transpose is read once more, and an element has half a byte and its share of a scale.
  const four = { matrixPrecision: "fp4" } as const;
  const ratio =
    bytes(operators({}, four), "cast-fp4") / bytes(operators(undefined, four), "cast-fp4");
  expect(ratio).toBeCloseTo((4 + 0.5625) / (6 + 1.125), 12);
});

test("a base in 8-bit floating point is what 8-bit products take, and written out for others", () => {
  const o = { matrixPrecision: "fp8" } as const;
  expect(operators({ base: "fp8" }, o)).toEqual(operators({}, o));
  const matrices = 32 * (4 * 4096 ** 2 + 3 * 4096 * 11_008);
  // Read in 1 byte, written in 2, forward and backward.
  expect(bytes(operators({ base: "fp8" }), "expand-fp8")).toBe(2 * 3 * matrices);
  for (const matrixPrecision of ["int8", "fp4"] as const) {
    const list = operators({ base: "fp8" }, { matrixPrecision });
    expect(bytes(list, "expand-fp8")).toBe(2 * 3 * matrices);
  }
});

test("adapters multiply in training precision, and drop elements of their input with a mask", () => {
  const of = (adapter: Partial<Adapter>): Operator[] =>
    operators({ targets: ["qkv"], ...adapter }, { matrixPrecision: "fp8" });
  const thin = of({}).filter((o) => o.kind === "gemm" && o.shape.includes(8));
  expect(thin.every((o) => o.form === "bf16")).toBe(true);
  expect(thin).toHaveLength(6);
  const n = 32 * llama.context * 4096;
  // Each direction reads and writes 2 bytes, and a byte of mask.
  expect(bytes(of({ dropout: 0.1 }), "dropout")).toBe(2 * 5 * n);
  expect(bytes(of({}), "dropout")).toBe(0);
});

import { expect, test } from "vitest";
import { defineModel, model, modelFlops } from "@trireme/workload";

test("MegaScale's baseline has 1.0776e12 FLOPs a token", () => {
  // Implied by every Megatron-LM row of its Table 2; four digits.
  expect(modelFlops(model("gpt3-175b"), { sequence: 2048 })).toBeCloseTo(1.0776e12, -8);
});

test("the hardware convention is the formula of SC'21", () => {
  for (const [layers, hidden, heads] of [
    [24, 2304, 24],
    [128, 25_600, 160],
  ] as const) {
    const m = defineModel({ layers, hidden, heads, vocab: 51_200 });
    const s = 2048;
    const formula =
      96 * s * layers * hidden ** 2 * (1 + s / (6 * hidden) + m.vocab / (16 * layers * hidden));
    // The same terms summed in another order: rounding only.
    expect(modelFlops(m, { sequence: s }, "hardware") / (formula / s)).toBeCloseTo(1, 12);
  }
});

test("causal counting drops half of the attention and nothing else", () => {
  const m = model("llama3-8b");
  const at = (sequence: number): number =>
    modelFlops(m, { sequence }) - modelFlops(m, { sequence }, "model-causal");
  expect(at(8192)).toBe(6 * 32 * 4096 * 8192);
  expect(at(16_384)).toBe(2 * at(8192));
});

test("an untied input embedding multiplies nothing", () => {
  const shape = { layers: 2, hidden: 64, heads: 4, vocab: 1000 };
  const tied = modelFlops(defineModel(shape), { sequence: 16 });
  expect(modelFlops(defineModel({ ...shape, tied: false }), { sequence: 16 })).toBe(tied);
});

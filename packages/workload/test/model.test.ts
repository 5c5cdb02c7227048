import { expect, test } from "vitest";
import { defineModel, model, modelNames, parameters } from "@trireme/workload";

test("parameter counts equal the published totals to the digit", () => {
  // Checkpoints on the Hugging Face hub, as counted by their own tensors.
  const published: Record<string, number> = {
    gpt2: 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "llama-7b": 6_738_415_616,
    "llama2-7b": 6_738_415_616,
    "llama2-13b": 13_015_864_320,
    "llama2-70b": 68_976_648_192,
    "llama3-8b": 8_030_261_248,
    "llama3-70b": 70_553_706_496,
    "llama3-405b": 405_853_388_800,
  };
  for (const [name, total] of Object.entries(published)) {
    expect({ name, total: parameters(model(name)).total }).toEqual({ name, total });
  }
});

test("GPT form follows the formula of SC'21", () => {
  // P = 12Lh²(1 + 13/(12h) + (V+s)/(12Lh)), which leaves out the final norm's 2h.
  for (const name of ["gpt2-xl", "gpt3-175b", "gpt3-175b-openai", "gpt-530b"]) {
    const { layers: l, hidden: h, vocab, context } = model(name);
    const formula = 12 * l * h * h + 13 * l * h + (vocab + context) * h;
    expect({ name, total: parameters(model(name)).total }).toEqual({
      name,
      total: formula + 2 * h,
    });
  }
});

test("the table of SC'21 has its parameter column", () => {
  // Table 1: layers, hidden, heads, billions as printed to one decimal.
  const rows: readonly (readonly [number, number, number, number])[] = [
    [24, 2304, 24, 1.7],
    [30, 3072, 32, 3.6],
    [36, 4096, 32, 7.5],
    [40, 6144, 48, 18.4],
    [48, 8192, 64, 39.1],
    [60, 10_240, 80, 76.1],
    [80, 12_288, 96, 145.6],
    [96, 16_384, 128, 310.1],
    [105, 20_480, 128, 529.6],
    [128, 25_600, 160, 1008.0],
  ];
  for (const [layers, hidden, heads, billions] of rows) {
    const { total } = parameters(defineModel({ layers, hidden, heads, vocab: 51_200 }));
    expect(total / 1e9).toBeGreaterThan(billions - 0.051);
    expect(total / 1e9).toBeLessThan(billions + 0.051);
  }
});

test("the parts sum to the total, for every preset", () => {
  for (const name of modelNames) {
    const m = model(name);
    const p = parameters(m);
    expect(p.total).toBe(p.embedding + m.layers * p.layer + p.final + p.head);
    expect(m.source).not.toBe("");
    expect(m.name).toBe(name);
  }
});

test("a shape alone is a model of GPT form", () => {
  expect(defineModel({ layers: 2, hidden: 64, heads: 4, vocab: 100 })).toMatchObject({
    kvHeads: 4,
    headDim: 16,
    ffn: 256,
    position: "learned",
    norm: "layernorm",
    activation: "gelu",
    bias: true,
    tied: true,
  });
});

test("impossible shapes are refused with the nearest legal choice", () => {
  const base = { layers: 2, hidden: 64, heads: 4, vocab: 100 };
  expect(() => defineModel({ ...base, heads: 7 })).toThrow(
    "hidden 64 is not a multiple of heads 7; use heads 8",
  );
  expect(() => defineModel({ ...base, kvHeads: 3 })).toThrow(
    "heads 4 is not a multiple of kvHeads 3; use kvHeads 2",
  );
  expect(() => defineModel({ ...base, layers: 0 })).toThrow("layers 0 must be a whole number");
  expect(() => defineModel({ ...base, ffn: 1.5 })).toThrow("ffn 1.5");
  expect(() => defineModel({ ...base, heads: 0 })).toThrow("heads 0");
  expect(() => model("lama3-8b")).toThrow('unknown model "lama3-8b"; did you mean "llama3-8b"?');
  expect(() => model("toString")).toThrow("unknown model");
});

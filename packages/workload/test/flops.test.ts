import { expect, test } from "vitest";
import { readFileSync } from "node:fs";
import {
  type Model,
  defineModel,
  definePlan,
  elementFlops,
  flopConventions,
  model,
  modelFlops,
  parameters,
} from "@trireme/workload";

const vectors = readFileSync(new URL("vectors/aleph-alpha.csv", import.meta.url), "utf8");

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

test("MegaScale-MoE's model has 2.8246e11 FLOPs a token", () => {
  // Its utilisation at 240 and 1440 devices implies 2.8250e11 and 2.8216e11; matrices alone, half the score matrix.
  const flops = modelFlops(model("megascale-moe-352b"), { sequence: 8192 }, "matrix-causal");
  expect(flops).toBeCloseTo(2.8246e11, -7);
});

test("gpt-oss has the FLOPs a token that Megatron-Bridge counts: pairs within mask and window", () => {
  // TFLOP/s over tokens/s of its model cards: 32.64 and 32.63 at 4096 tokens, 45.28 at 32,768 (three digits); 20B 31.36.
  const at = (name: string, sequence: number): number =>
    modelFlops(model(name), { sequence }, "exact") / 1e9;
  expect(at("gpt-oss-120b", 4096)).toBeCloseTo(32.63, 2);
  expect(Math.abs(at("gpt-oss-120b", 32_768) / 45.28 - 1)).toBeLessThan(0.002);
  expect(Math.abs(at("gpt-oss-20b", 32_768) / 31.36 - 1)).toBeLessThan(0.002);
  // Its tables up to 26.04 say 27.18: half the score matrix in every layer, and two of an expert's three matrices.
  const gate = 6 * 36 * 4 * 2880 * 2880;
  const windows = 18 * 6 * 4096 * (4096 - 2 * (128 - (128 * 127) / 8192));
  expect(at("gpt-oss-120b", 4096) + (windows - gate) / 1e9).toBeCloseTo(27.2, 1);
});

test("DeepSeek-V3 has the FLOPs a token that its published rates imply, with and without prediction", () => {
  // 249.63 to 249.74 GFLOP are quotients of rounded tokens/s and TFLOP/s; three digits are theirs.
  const v3 = model("deepseek-v3");
  const at = (m: Model): number => modelFlops(m, { sequence: 4096 }, "matrix-causal") / 1e9;
  expect(at(v3)).toBeCloseTo(249.81, 2);
  expect(Math.abs(at(v3) / 249.7 - 1)).toBeLessThan(0.001);
  // "About 260" with its prediction module.
  expect(at(defineModel({ ...v3, prediction: 1 }))).toBeCloseTo(260, 1);
});

test("LoRA costs two thirds of training and its own matrices", () => {
  const m = model("llama2-70b");
  const p = { sequence: 8192 };
  const adapted = defineModel({ ...m, adapter: { rank: 16 } });
  const { adapters } = parameters(adapted);
  const attention = 6 * 80 * 8192 * 8192 * 2;
  const whole = modelFlops(m, p, "matrix-full");
  expect(modelFlops(adapted, p, "matrix-full")).toBe(
    attention + ((whole - attention) * 2) / 3 + 6 * adapters,
  );
});

test("a prediction module counts as its model's last layer, whatever forms come before", () => {
  const shape = { layers: 3, hidden: 64, heads: 4, vocab: 100, prediction: 1 };
  const alone = (o: object, convention: "matrix-full" | "exact"): number => {
    const m = defineModel({ ...shape, ...o });
    const without = defineModel({ ...m, prediction: 0 });
    const p = { sequence: 64 };
    return modelFlops(m, p, convention) - modelFlops(without, p, convention);
  };
  // Three layers, the second to all, the third windowed: the form that occurs first.
  const windowed = alone({ window: { size: 8, every: 2 } }, "exact");
  expect(windowed).toBe(alone({ window: { size: 8, every: 0 } }, "exact"));
  // The third layer is dense: so is the module, and it has no router.
  const dense = alone({ experts: { count: 4, active: 2, every: 2 } }, "matrix-full");
  expect(dense).toBe(alone({}, "matrix-full"));
});

test("Aleph Alpha's measured utilisations are those of their step times", () => {
  const [head, ...lines] = vectors.trim().split("\n");
  const columns = head!.split(",");
  let consistent = 0;
  for (const line of lines) {
    const row = line.split(",").map(Number);
    const at = (column: string): number => row[columns.indexOf(column)]!;
    const sequence = at("sequence");
    const m = defineModel({
      layers: at("layers"),
      hidden: at("hidden"),
      heads: at("heads"),
      ffn: at("ffn"),
      vocab: at("vocab"),
      position: "rotary",
      norm: "rmsnorm",
      activation: "swiglu",
      bias: false,
      tied: false,
    });
    const flops = modelFlops(m, { sequence }, "model-embedded") * at("globalBatch") * sequence;
    const ours = flops / (at("seconds") * at("devices") * 312e12);
    if (Math.abs(ours / at("mfu") - 1) < 0.005) consistent++;
  }
  // Three rows contradict their own step time by more.
  expect([consistent, lines.length]).toEqual([255, 258]);
});

test("conventions differ by what their rules say, and an unknown one is refused", () => {
  const m = model("llama3-8b");
  const p = { sequence: 8192 };
  const full = flopConventions["model-full"];
  expect(modelFlops(m, p, full)).toBe(modelFlops(m, p, "model-full"));
  const table = 6 * m.vocab * m.hidden;
  expect(modelFlops(m, p, { ...full, embedding: true }) - modelFlops(m, p, full)).toBe(table);
  expect(modelFlops(m, p, full) - modelFlops(m, p, { ...full, logits: false })).toBe(table);
  // Exact causal attention: (s + 1) / 2 keys a token.
  const exact = modelFlops(m, p, "exact") - modelFlops(m, p, "matrix-causal");
  expect(exact).toBe(6 * 32 * 4096);
  const unknown: "exact" = JSON.parse('"model-ful"');
  expect(() => modelFlops(m, p, unknown)).toThrow('did you mean "model-full"?');
});

test("a head with V rows weighs V / 12h(1 + s/6h) layers, and elements sum to the model", () => {
  const m = defineModel({ layers: 32, hidden: 3072, heads: 24, vocab: 262_144 });
  const p = definePlan(m, { globalBatch: 1, sequence: 2048, flashAttention: false });
  const flops = elementFlops(m, p);
  expect(flops.length).toBe(34);
  // arXiv 2411.05288 §2.1; norms, activations and loss, that it does not count, are below 1 %.
  const ratio = m.vocab / (12 * m.hidden * (1 + 2048 / (6 * m.hidden)));
  expect(Math.abs(flops[33]! / flops[1]! / ratio - 1)).toBeLessThan(0.01);
  const sum = flops.reduce((a, b) => a + b, 0);
  expect(Math.abs(sum / (2048 * modelFlops(m, p)) - 1)).toBeLessThan(0.01);
});

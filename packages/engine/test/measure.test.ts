import { measureLink, measureOperators } from "@trireme/engine";
import { defineModel, definePlan, stageOperators, stages } from "@trireme/workload";
import { expect, test } from "vitest";

test.each([
  ["GPT", {}, {}],
  ["GPT with experts", { experts: { count: 4, active: 2, sharedFfn: 64 } }, {}],
  ["Llama", { position: "rotary", norm: "rmsnorm", activation: "swiglu", bias: false }, {}],
  [
    "DeepSeek",
    {
      position: "rotary",
      norm: "rmsnorm",
      bias: false,
      latent: { keyValueRank: 16, nopeDim: 8, ropeDim: 4, valueDim: 8 },
    },
    {},
  ],
  ["GPT beside 4 bits", { adapter: { rank: 4, base: "nf4" } }, { offload: "optimizer" }],
  ["GPT beside 8 bits", { adapter: { rank: 4, base: "int8" } }, {}],
  ["GPT in BF16", {}, { precision: "bf16" }],
  ["mixture in BF16", { experts: { count: 4, active: 2 } }, { precision: "bf16" }],
  ["GPT in FP8", {}, { precision: "bf16", matrixPrecision: "fp8" }],
] as const)("every operator of a %s plan is timed, forward and backward", async (_, form, more) => {
  const model = defineModel({ layers: 4, hidden: 64, heads: 4, vocab: 50, context: 32, ...form });
  const shape = { pp: 2, globalBatch: 8, microbatch: 2, precision: "fp32" } as const;
  const plan = definePlan(model, { ...shape, ...more });
  const operators = stages(model, plan).flatMap((s) => stageOperators(model, plan, s).operators);
  const times = await measureOperators(operators, { budget: 0.2, cores: 2 });
  expect([...times.keys()].toSorted()).toEqual(
    [...new Set(operators.map(({ key }) => key))].toSorted(),
  );
  for (const [key, seconds] of times) {
    // A loss's gradient is made with the loss itself, a cast with its product: nothing is left to time.
    if (!key.startsWith("loss") && !key.includes("cast-")) expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThan(1);
  }
});

test("a larger product takes longer", async () => {
  const at = (hidden: number): ReturnType<typeof measureOperators> => {
    const model = defineModel({ layers: 1, hidden, heads: 4, vocab: 50, context: 64 });
    const plan = definePlan(model, { globalBatch: 4, microbatch: 4, precision: "fp32" });
    const { operators } = stageOperators(model, plan, stages(model, plan)[0]!);
    const products = operators.filter(({ kind, pass }) => kind === "gemm" && pass === "forward");
    return measureOperators(products, { budget: 0.2, cores: 1 });
  };
  const total = async (hidden: number): Promise<number> =>
    [...(await at(hidden)).values()].reduce((sum, seconds) => sum + seconds, 0);
  // Sixteen times the arithmetic: far more than timings vary.
  expect(await total(256)).toBeGreaterThan(2 * (await total(64)));
});

test("messages between two threads take time, and bandwidth is that of a machine", async () => {
  const { latency, bandwidth } = await measureLink();
  expect(latency).toBeGreaterThan(0);
  expect(latency).toBeLessThan(0.1);
  expect(bandwidth).toBeGreaterThan(1e6);
  expect(bandwidth).toBeLessThan(1e12);
});

test("nothing to time takes no time, and budgets that make no sense are refused", async () => {
  expect(await measureOperators([], { budget: 1, cores: 2 })).toEqual(new Map());
  await expect(measureOperators([], { budget: 0, cores: 2 })).rejects.toThrow("budget 0 s");
  await expect(measureOperators([], { budget: 1, cores: 1.5 })).rejects.toThrow("1.5 cores");
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { estimate, memory, rooflinePricer } from "@trireme/cost-model";
import { accelerator, defineCluster } from "@trireme/topology";
import {
  type ModelOptions,
  type Operator,
  defineModel,
  definePlan,
  model,
  stageOperators,
  stages,
} from "@trireme/workload";

const shape: ModelOptions = { layers: 2, hidden: 4096, heads: 64, headDim: 64, vocab: 100 };

/** The attention kernels of a model with this window in every layer, forward and backward. */
function attention(sequence: number, size?: number): readonly Operator[] {
  const window = size === undefined ? {} : { window: { size, every: 0 } };
  const m = defineModel({ ...shape, context: sequence, ...window });
  const p = definePlan(m, { globalBatch: 1 });
  return stageOperators(m, p, stages(m, p)[0]!).operators.filter((o) => o.kind === "attention");
}

function seconds(device: string, operators: readonly Operator[]): number {
  const pricer = rooflinePricer(accelerator(device), "bf16");
  return operators.reduce((sum, o) => sum + pricer.operator(o), 0);
}

test("a narrow window computes the tiles that its edges cut, and no more of the sequence", () => {
  for (const device of ["a100-80", "h100", "b200"]) {
    const [all, narrow] = [attention(8192), attention(8192, 128)];
    const flops = (list: readonly Operator[]): number => list.reduce((n, o) => n + o.flops, 0);
    const work = flops(narrow) / flops(all);
    const time = seconds(device, narrow) / seconds(device, all);
    // 127 of 4096 keys a query. A block of 128 queries meets at least two tiles of 128 keys, three when they are not aligned,
    // and starts once for them.
    expect(work).toBeCloseTo(127 / 4096, 3);
    expect(time).toBeGreaterThan(2 * work);
    expect(time).toBeLessThan(4 * work);
    // Twice the sequence is twice the time.
    const twice = seconds(device, attention(16_384, 128)) / seconds(device, narrow);
    expect(twice).toBeGreaterThan(1.95);
    expect(twice).toBeLessThan(2.05);
  }
});

test("a wide window loses little to its edges", () => {
  const [full, wide] = [attention(32_768), attention(32_768, 4096)];
  const work = wide[0]!.flops / full[0]!.flops;
  const time = seconds("h100", wide) / seconds("h100", full);
  expect(time / work).toBeGreaterThan(1);
  expect(time / work).toBeLessThan(1.1);
});

test("a window as long as the sequence is none", () => {
  expect(seconds("h100", attention(2048, 2048))).toBe(seconds("h100", attention(2048)));
  expect(seconds("h100", attention(2048, 5000))).toBe(seconds("h100", attention(2048)));
});

test("a wider window never takes less", () => {
  fc.assert(
    fc.property(
      // From a tile less than the sequence on, an edge goes as keys come: equal to a millionth.
      fc.integer({ min: 1, max: 3500 }),
      fc.integer({ min: 1, max: 400 }),
      (size, more) => {
        expect(seconds("h100", attention(4096, size + more))).toBeGreaterThanOrEqual(
          seconds("h100", attention(4096, size)) * (1 - 1e-12),
        );
      },
    ),
  );
});

test("layers of gpt-oss that see a window cost less than those that see all, in time and not in memory", () => {
  const oss = model("gpt-oss-120b");
  const { window: _, ...unwindowed } = oss;
  const plan = definePlan(oss, { dp: 64, ep: 64, zero: 1, globalBatch: 64, sequence: 4096 });
  const cluster = defineCluster({ host: "dgx-h100", hosts: 8 });
  const step = (m: typeof oss): number => {
    const e = estimate({ model: m, plan, cluster, checkMemory: false });
    if (!e.ok) throw new Error(e.reason);
    return e.step;
  };
  expect(step(oss)).toBeLessThan(step(unwindowed));
  expect(memory({ model: oss, plan }).total).toBe(memory({ model: unwindowed, plan }).total);
});

test("experts with biases and bounds take the elementary operations that these cost, and keep what is cut", () => {
  const oss = model("gpt-oss-20b");
  const bare = defineModel({ ...oss, bias: false, activationClamp: 0 });
  const plan = definePlan(oss, {
    dp: 8,
    ep: 8,
    zero: 1,
    microbatch: 4,
    globalBatch: 32,
    sequence: 4096,
  });
  const cluster = defineCluster({ host: "dgx-h100", hosts: 1 });
  const [a, b] = [oss, bare].map((m) => estimate({ model: m, plan, cluster, checkMemory: false }));
  if (!a?.ok || !b?.ok) throw new Error("not estimated");
  // 28 + 40 bytes for each of the second product's results and 16 + 20 for each inner value, over 24 layers of 65,536 rows.
  const rows = 4 * 4 * 4096;
  const bytes = 24 * rows * 2880 * (28 + 40 + 16 + 20);
  const streamed = bytes / (3.35e12 * 0.82);
  expect(a.breakdown.compute - b.breakdown.compute).toBeGreaterThan(0.9 * streamed);
  expect(a.memory.activations - b.memory.activations).toBe(24 * rows * 2880 * 2 * 2);
});

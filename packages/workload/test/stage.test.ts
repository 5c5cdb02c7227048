import fc from "fast-check";
import { expect, test } from "vitest";
import {
  defineModel,
  definePlan,
  model,
  parameters,
  stageParameters,
  stages,
  vocabShard,
} from "@trireme/workload";

test("layers are never lost, doubled or reordered", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 200 }),
      fc.integer({ min: 1, max: 20 }),
      fc.integer({ min: 1, max: 5 }),
      (layers, pp, vpp) => {
        fc.pre(pp * vpp <= layers && (pp > 1 || vpp === 1));
        const m = defineModel({ layers, hidden: 8, heads: 1, vocab: 10 });
        const list = stages(m, definePlan(m, { pp, vpp, globalBatch: pp }));
        let next = 0;
        for (const [i, s] of list.entries()) {
          expect(s.stage).toBe(i);
          expect(s.firstLayer).toBe(next);
          next += s.layers;
        }
        expect(next).toBe(layers);
        expect(list.filter((s) => s.embedding).map((s) => s.stage)).toEqual([0]);
        expect(list.filter((s) => s.head).map((s) => s.stage)).toEqual([pp * vpp - 1]);
        const counts = list.map((s) => s.layers);
        expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
      },
    ),
  );
});

test("Llama 3 405B leaves its first and last of 16 stages a layer less", () => {
  const m = model("llama3-405b");
  const list = stages(m, definePlan(m, { pp: 16, globalBatch: 16 }));
  expect(list.map((s) => s.layers)).toEqual([7, ...Array<number>(14).fill(8), 7]);
});

test("ends that count as layers are spread with them, as Megatron-LM does where it accepts them", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 2, max: 12 }),
      fc.integer({ min: 1, max: 4 }),
      fc.integer({ min: 1, max: 5 }),
      fc.boolean(),
      fc.boolean(),
      (pp, vpp, each, accountForEmbedding, accountForLoss) => {
        // Megatron-LM: layers and counted ends divide by the stages; the ends' stages have one layer less.
        const layers = each * pp * vpp - Number(accountForEmbedding) - Number(accountForLoss);
        fc.pre(layers > 0);
        const m = defineModel({ layers, hidden: 8, heads: 1, vocab: 10 });
        const o = { pp, vpp, accountForEmbedding, accountForLoss, globalBatch: pp };
        const list = stages(m, definePlan(m, o));
        const expected = Array<number>(pp * vpp).fill(each);
        if (accountForEmbedding) expected[0]!--;
        if (accountForLoss) expected[pp * vpp - 1]!--;
        expect(list.map((s) => s.layers)).toEqual(expected);
        expect(list.map((s) => s.firstLayer)).toEqual(
          expected.map((_, i) => expected.slice(0, i).reduce((a, b) => a + b, 0)),
        );
      },
    ),
  );
});

test("layers and ends that do not divide differ by one at most, ends counted", () => {
  const m = defineModel({ layers: 31, hidden: 8, heads: 1, vocab: 10 });
  const layersOf = (o: Partial<Parameters<typeof definePlan>[1]>): number[] =>
    stages(m, definePlan(m, { pp: 8, globalBatch: 8, ...o })).map((s) => s.layers);
  expect(layersOf({})).toEqual([4, 4, 4, 4, 4, 4, 4, 3]);
  expect(layersOf({ accountForEmbedding: true })).toEqual([3, 4, 4, 4, 4, 4, 4, 4]);
  expect(layersOf({ accountForLoss: true })).toEqual([4, 4, 4, 4, 4, 4, 4, 3]);
  expect(layersOf({ accountForEmbedding: true, accountForLoss: true })).toEqual([
    3, 4, 4, 5, 4, 4, 4, 3,
  ]);
});

test("on 128 stages Llama 3.1 405B has its embedding and its head on stages of their own", () => {
  const m = model("llama3-405b");
  const both = { accountForEmbedding: true, accountForLoss: true };
  const p = definePlan(m, { pp: 16, vpp: 8, globalBatch: 16, ...both });
  const list = stages(m, p);
  expect(list.map((s) => s.layers)).toEqual([0, ...Array<number>(126).fill(1), 0]);
  // A table each, of 128,256 tokens × 16,384; the norm stands before the head.
  expect(stageParameters(m, p, list[0]!).total).toBe(128_256 * 16_384);
  expect(stageParameters(m, p, list[127]!).total).toBe(128_256 * 16_384 + 16_384);
});

test("an explicit layout is kept", () => {
  const m = defineModel({ layers: 8, hidden: 8, heads: 1, vocab: 10 });
  const p = definePlan(m, { pp: 4, globalBatch: 4, stageLayers: [1, 2, 2, 3] });
  expect(stages(m, p).map((s) => [s.firstLayer, s.layers])).toEqual([
    [0, 1],
    [1, 2],
    [3, 2],
    [5, 3],
  ]);
});

test("the ranks' parameters are the model's, plus copies and padding that can be named", () => {
  const shape = fc.record({
    tied: fc.boolean(),
    bias: fc.boolean(),
    activation: fc.constantFrom("gelu" as const, "swiglu" as const),
    norm: fc.constantFrom("layernorm" as const, "rmsnorm" as const),
    position: fc.constantFrom("learned" as const, "rotary" as const),
    vocab: fc.integer({ min: 1, max: 1000 }),
  });
  fc.assert(
    fc.property(
      shape,
      fc.constantFrom(1, 2, 4),
      fc.constantFrom(1, 2, 3),
      fc.constantFrom(1, 2),
      (o, tp, pp, vpp) => {
        fc.pre(pp > 1 || vpp === 1);
        const m = defineModel({ layers: 7, hidden: 64, heads: 8, kvHeads: 4, ...o });
        const p = definePlan(m, { tp, pp, vpp, globalBatch: pp });
        const list = stages(m, p);
        let held = 0;
        for (const s of list) {
          const { total, sharded, replicated } = stageParameters(m, p, s);
          expect(total).toBe(sharded + replicated);
          held += tp * sharded + replicated;
        }
        const table = tp * vocabShard(m, p) * m.hidden;
        const copies = m.tied && list.length > 1 ? table : 0;
        const padding = (table - m.vocab * m.hidden) * (m.tied ? 1 : 2);
        expect(held).toBe(parameters(m).total + copies + padding);
      },
    ),
  );
});

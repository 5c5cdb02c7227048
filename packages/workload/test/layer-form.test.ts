import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type Model,
  countForms,
  defineModel,
  firstLayerOf,
  layerFormAt,
  layerForms,
  model,
} from "@trireme/workload";

const anyModel = fc
  .record({
    layers: fc.integer({ min: 1, max: 40 }),
    windowEvery: fc.option(fc.integer({ min: 0, max: 7 })),
    experts: fc.option(
      fc.record({
        every: fc.integer({ min: 1, max: 5 }),
        denseLayers: fc.integer({ min: 0, max: 9 }),
      }),
    ),
  })
  .filter(
    ({ experts: e, layers }) =>
      e === null || Math.floor(layers / e.every) > Math.floor(e.denseLayers / e.every),
  )
  .map((o): Model =>
    defineModel({
      layers: o.layers,
      hidden: 8,
      heads: 2,
      vocab: 16,
      ...(o.windowEvery === null ? {} : { window: { size: 4, every: o.windowEvery } }),
      ...(o.experts === null ? {} : { experts: { count: 4, active: 2, ...o.experts } }),
    }),
  );

test("forms are those that a walk over the layers finds, in its order, and none is lost", () => {
  fc.assert(
    fc.property(anyModel, fc.nat(40), fc.nat(40), (m, a, b) => {
      const walk = Array.from({ length: m.layers }, (_, i) => {
        const { window, experts } = m;
        const mixed =
          experts !== undefined && i >= experts.denseLayers && (i + 1) % experts.every === 0;
        return {
          mixer: "attention",
          windowed: window !== undefined && (window.every === 0 || (i + 1) % window.every > 0),
          dense: !mixed,
          experts: mixed,
        };
      });
      const names = walk.map((f) => JSON.stringify(f));
      const distinct = [...new Set(names)];
      expect(layerForms(m).map((f) => JSON.stringify(f))).toEqual(distinct);
      expect(distinct.map((_, i) => firstLayerOf(m, i))).toEqual(
        distinct.map((name) => names.indexOf(name)),
      );
      for (let i = 0; i < m.layers; i++) {
        expect(layerFormAt(m, i)).toBe(distinct.indexOf(names[i]!));
      }
      const [from, to] = [Math.min(a, b, m.layers), Math.min(Math.max(a, b), m.layers)];
      expect(countForms(m, from, to - from)).toEqual(
        distinct.map((name) => names.slice(from, to).filter((n) => n === name).length),
      );
    }),
  );
});

test("models mix their layers as published", () => {
  const counts = (name: string): readonly number[] =>
    countForms(model(name), 0, model(name).layers);
  expect(layerForms(model("llama3-8b"))).toEqual([
    { mixer: "attention", windowed: false, dense: true, experts: false },
  ]);
  expect(counts("deepseek-v3")).toEqual([3, 58]);
  expect(counts("llama4-maverick")).toEqual([24, 24]);
  expect(counts("gemma2-9b")).toEqual([21, 21]);
  expect(counts("gemma3-1b")).toEqual([22, 4]);
});

test("a count of layers beyond memory is counted, not listed", () => {
  const m = defineModel({
    layers: 2 ** 50,
    hidden: 8,
    heads: 1,
    vocab: 2,
    experts: { count: 2, active: 1, every: 2 },
  });
  expect(countForms(m, 0, m.layers)).toEqual([2 ** 49, 2 ** 49]);
});

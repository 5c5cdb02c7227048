import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type CollectiveOperator,
  type Plan,
  type PlanOptions,
  axes,
  boundaryBytes,
  defineModel,
  definePlan,
  microbatches,
  model,
  parameters,
  ranks,
  stageOperators,
  stageParameters,
  stagedAxes,
  stages,
} from "@trireme/workload";

const llama = model("llama2-13b");

/** HexiScale's case study: three A800, three 4090 and two 3090 for a model of 40 layers. */
const hexiScale: PlanOptions = {
  globalBatch: 12,
  sequence: 4096,
  pipelines: [
    [
      { tp: 2, layers: 30 },
      { tp: 1, layers: 10 },
    ],
    [
      { tp: 1, layers: 12 },
      { tp: 2, layers: 18 },
      { tp: 2, layers: 10 },
    ],
  ],
  pipelineBatches: [8, 4],
};

test("pipelines that differ have derived degrees, stages and batches of their own", () => {
  const p = definePlan(llama, hexiScale);
  expect(p).toMatchObject({ tp: 2, pp: 3, dp: 2, schedule: "1f1b" });
  expect(ranks(p)).toBe(8);
  expect([microbatches(p, 0), microbatches(p, 1)]).toEqual([8, 4]);
  expect(stages(llama, p, 1)).toEqual([
    { stage: 0, firstLayer: 0, layers: 12, embedding: true, head: false, tp: 1 },
    { stage: 1, firstLayer: 12, layers: 18, embedding: false, head: false, tp: 2 },
    { stage: 2, firstLayer: 30, layers: 10, embedding: false, head: true, tp: 2 },
  ]);
  expect(stagedAxes(llama, p)).toEqual([
    [
      { width: 2, layers: 30 },
      { width: 1, layers: 10 },
    ],
    [
      { width: 1, layers: 12 },
      { width: 2, layers: 18 },
      { width: 2, layers: 10 },
    ],
  ]);
  // A leader sends the whole activation: widths differ on both sides.
  expect(boundaryBytes(llama, p)).toBe(2 * 4096 * 5120);
});

test("pipelines that are alike are the usual plan, its ranks pipeline by pipeline", () => {
  const stage = { tp: 2, layers: 20 };
  const pipelines = [
    [stage, stage],
    [stage, stage],
  ];
  const written = definePlan(llama, { globalBatch: 8, pipelines, pipelineBatches: [4, 4] });
  const usual = definePlan(llama, {
    globalBatch: 8,
    tp: 2,
    pp: 2,
    dp: 2,
    stageLayers: [20, 20],
    order: ["tp", "cp", "pp", "dp"],
  });
  expect(written).toEqual(usual);
  expect(stagedAxes(llama, usual)).toEqual(
    pipelines.map((p) => p.map(() => ({ width: 2, layers: 20 }))),
  );
  expect(definePlan(llama, written)).toEqual(written);
});

test("a plan without pipelines has neither of the fields", () => {
  const p = definePlan(llama, { globalBatch: 1 });
  expect(Object.keys(p)).not.toContain("pipelines");
  expect(Object.keys(p)).not.toContain("pipelineBatches");
});

test("what holds for all pipelines alike is refused of those that differ, until one is named", () => {
  const p = definePlan(llama, hexiScale);
  for (const ask of [
    (): unknown => stages(llama, p),
    (): unknown => microbatches(p),
    (): unknown => axes(p),
    (): unknown => stages(llama, p, 2),
  ]) {
    expect(ask).toThrow("the plan's 2 pipelines differ");
  }
  const looped = definePlan(llama, { globalBatch: 4, pp: 2, vpp: 2 });
  expect(() => stagedAxes(llama, looped)).toThrow("a staged mesh has no vpp, and the plan's is 2");
});

const base = hexiScale.pipelines!;
const moe = model("mixtral-8x7b");

test.each<readonly [string, () => unknown, string]>([
  [
    "no pipeline",
    () => definePlan(llama, { globalBatch: 1, pipelines: [] }),
    "pipelines has no stage",
  ],
  [
    "no stage",
    () => definePlan(llama, { globalBatch: 1, pipelines: [base[0]!, []] }),
    "pipelines[1] has no stage",
  ],
  [
    "a degree that is another",
    () => definePlan(llama, { ...hexiScale, tp: 4 }),
    "tp 4 is not 2, which the pipelines make it; leave it out",
  ],
  [
    "lost layers",
    () => definePlan(llama, { globalBatch: 2, pipelines: [base[0]!, [{ tp: 2, layers: 39 }]] }),
    "pipelines[1] has 39 = 39 layers, but llama2-13b has 40",
  ],
  [
    "no layers",
    () => definePlan(llama, { globalBatch: 2, pipelines: [base[0]!, [{ tp: 2, layers: 0 }]] }),
    "pipelines[1][0]: layers 0 must be a whole number",
  ],
  [
    "a width that does not divide the widest",
    () =>
      definePlan(llama, {
        globalBatch: 2,
        pipelines: [[{ tp: 4, layers: 40 }], [{ tp: 3, layers: 40 }]],
      }),
    "pipelines[1][0]: tp 3 does not divide the widest stage's tp 4; the nearest legal tp is 2",
  ],
  [
    "a width that does not divide the heads",
    () =>
      definePlan(llama, {
        globalBatch: 2,
        pipelines: [[{ tp: 3, layers: 40 }], [{ tp: 1, layers: 40 }]],
      }),
    "heads 40 is not a multiple of tp 3",
  ],
  [
    "context parallelism",
    () => definePlan(llama, { ...hexiScale, cp: 2 }),
    "pipelines that differ exclude cp 2; use cp 1",
  ],
  ["chunks", () => definePlan(llama, { ...hexiScale, vpp: 2 }), "exclude vpp 2"],
  [
    "another schedule",
    () => definePlan(llama, { ...hexiScale, schedule: "zb-h1" }),
    "exclude schedule zb-h1; use schedule 1f1b or gpipe",
  ],
  [
    "a layout beside",
    () => definePlan(llama, { ...hexiScale, stageLayers: [40] }),
    "exclude stageLayers 40",
  ],
  [
    "scatter and gather",
    () => definePlan(llama, { ...hexiScale, scatterGather: true }),
    "exclude scatterGather true",
  ],
  [
    "sharded weights",
    () => definePlan(llama, { ...hexiScale, zero: 3 }),
    "exclude zero 3; use zero 0 or 1",
  ],
  [
    "another order",
    () => definePlan(llama, { ...hexiScale, order: ["dp", "tp", "cp", "pp"] }),
    "leave order dp-tp-cp-pp out",
  ],
  [
    "experts",
    () =>
      definePlan(moe, {
        globalBatch: 2,
        pipelines: [[{ tp: 2, layers: 32 }], [{ tp: 1, layers: 32 }]],
      }),
    "cannot fold experts, and mixtral-8x7b has them",
  ],
  [
    "batches of no pipelines",
    () => definePlan(llama, { globalBatch: 2, pipelineBatches: [1, 1] }),
    "pipelineBatches 1+1 need pipelines",
  ],
  [
    "too few batches",
    () => definePlan(llama, { ...hexiScale, pipelineBatches: [12] }),
    "pipelineBatches has 1 entries, but there are 2 pipelines",
  ],
  [
    "lost samples",
    () => definePlan(llama, { ...hexiScale, pipelineBatches: [8, 3] }),
    "pipelineBatches 8+3 = 11, but globalBatch is 12",
  ],
  [
    "samples that make no microbatch",
    () => definePlan(llama, { ...hexiScale, microbatch: 2, pipelineBatches: [7, 5] }),
    "pipelineBatches[0] 7 is not a multiple of microbatch 2; the nearest is 8",
  ],
  [
    "an uneven share",
    () => definePlan(llama, { globalBatch: 13, pipelines: base }),
    "globalBatch 13 is not a multiple of dp 2",
  ],
])("%s is refused with its rule", (_, act, message) => {
  expect(act).toThrow(message);
  expect(act).toThrow(expect.objectContaining({ code: "PLAN" }));
});

const kinds = new Set(["gemm", "attention", "activation", "loss"]);

test("work and parameters are conserved in every pipeline, whatever its widths", () => {
  const m = defineModel({ layers: 6, hidden: 64, heads: 8, vocab: 120, context: 64, tied: false });
  const one = definePlan(m, { globalBatch: 1 });
  const flops = (p: Plan, pipeline?: number): number =>
    stages(m, p, pipeline)
      .flatMap((s) => {
        const { operators } = stageOperators(m, p, s);
        return operators
          .filter((o) => kinds.has(o.kind))
          .map((o) => (s.tp ?? p.tp) * o.flops * o.count);
      })
      .reduce((a, b) => a + b, 0);
  const cut = fc
    .array(fc.tuple(fc.constantFrom(1, 2, 4), fc.integer({ min: 1, max: 5 })), {
      minLength: 1,
      maxLength: 6,
    })
    .map((drawn) => {
      let rest = m.layers;
      const list = drawn.flatMap(([tp, n]) => {
        const layers = Math.min(n, rest);
        rest -= layers;
        return layers === 0 ? [] : [{ tp, layers }];
      });
      return rest === 0 ? list : [...list, { tp: 2, layers: rest }];
    });
  fc.assert(
    fc.property(fc.array(cut, { minLength: 2, maxLength: 4 }), (pipelines) => {
      const p = definePlan(m, { globalBatch: pipelines.length, pipelines });
      expect(ranks(p)).toBe(pipelines.flat().reduce((sum, s) => sum + s.tp, 0));
      for (const i of pipelines.keys()) {
        expect(flops(p, i)).toBe(flops(one));
        const held = stages(m, p, i).reduce((sum, s) => {
          const { sharded, replicated } = stageParameters(m, p, s);
          return sum + (s.tp ?? p.tp) * sharded + replicated;
        }, 0);
        expect(held).toBe(parameters(m).total);
      }
    }),
  );
});

test("each rank reduces what it holds over the pipelines", () => {
  const p = definePlan(llama, hexiScale);
  const [wide, narrow] = stages(llama, p, 0);
  const gradients = (s: typeof wide): readonly CollectiveOperator[] =>
    stageOperators(llama, p, s!).collectives.filter((c) => c.axis === "dp");
  for (const s of [wide, narrow]) {
    expect(gradients(s)).toEqual([
      {
        kind: "all-reduce",
        axis: "dp",
        pass: "update",
        bytes: 4 * stageParameters(llama, p, s!).total,
        count: 1,
      },
    ]);
  }
  const tensor = stageOperators(llama, p, narrow!).collectives.filter((c) => c.axis === "tp");
  expect(tensor).toEqual([]);
});

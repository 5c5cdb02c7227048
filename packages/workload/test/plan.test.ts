import fc from "fast-check";
import { expect, test } from "vitest";
import { TriremeError } from "@trireme/core";
import {
  type Plan,
  type PlanOptions,
  axes,
  defineModel,
  definePlan,
  microbatches,
  model,
  ranks,
} from "@trireme/workload";

const gpt = model("gpt3-175b");

/** What reaches the library from a file: nothing has checked its types. */
const parsed = (json: string): PlanOptions => JSON.parse(json);

test("MegaScale's plan on 12,288 ranks", () => {
  const p = definePlan(gpt, { tp: 8, pp: 8, dp: 192, vpp: 6, globalBatch: 6144 });
  expect(ranks(p)).toBe(12_288);
  expect(microbatches(p)).toBe(32);
  expect(p.schedule).toBe("interleaved");
  expect(p.sequence).toBe(2048);
  expect(axes(p)).toEqual([
    { name: "tp", size: 8 },
    { name: "dp", size: 192 },
    { name: "pp", size: 8 },
  ]);
});

test("each rule names its numbers and the nearest legal choice", () => {
  const llama = model("llama3-8b");
  const cases: readonly (readonly [() => unknown, string])[] = [
    [
      () => definePlan(gpt, { tp: 6, globalBatch: 1 }),
      "heads 128 is not a multiple of tp 6; the nearest legal tp is 4",
    ],
    [
      () => definePlan(llama, { tp: 16, globalBatch: 1 }),
      "kvHeads 8 is not a multiple of tp 16; the nearest legal tp is 8",
    ],
    // SimAI issue 202: 1,472 ranks, tp 8, pp 8, so dp 23, with a global batch of 32.
    [
      () => definePlan(gpt, { tp: 8, pp: 8, dp: 23, globalBatch: 32 }),
      "globalBatch 32 is not a multiple of dp 23 × microbatch 1 = 23; the nearest is 23",
    ],
    [
      () => definePlan(gpt, { pp: 8, vpp: 6, globalBatch: 6 }),
      "6 microbatches are fewer than pp 8; use 8 or more",
    ],
    [
      () => definePlan(gpt, { pp: 97, globalBatch: 97 }),
      "layers 96 are fewer than pp 97 × vpp 1 = 97 stages",
    ],
    [() => definePlan(gpt, { vpp: 2, globalBatch: 1 }), "vpp 2 needs pp 2 or more"],
    [
      () => definePlan(gpt, { pp: 2, vpp: 2, globalBatch: 2, schedule: "1f1b" }),
      "vpp 2 needs a schedule of several chunks, not 1f1b",
    ],
    [
      () => definePlan(gpt, { globalBatch: 1, sequence: 4096 }),
      "sequence 4096 is longer than the 2048 learned positions",
    ],
    [
      () => definePlan(llama, { tp: 8, sequence: 1001, sequenceParallel: true, globalBatch: 1 }),
      "sequence 1001 is not a multiple of tp 8; the nearest is 1000",
    ],
    [() => definePlan(gpt, { globalBatch: 0 }), "globalBatch 0 must be a whole number"],
    [() => definePlan(gpt, { globalBatch: 2 ** 53 }), "must be a whole number"],
    [() => definePlan(gpt, parsed('{"globalBatch":1,"schedule":"ifib"}')), 'did you mean "1f1b"?'],
    [() => definePlan(gpt, parsed('{"globalBatch":1,"zero":4}')), "zero 4"],
    [() => definePlan(gpt, { globalBatch: 1, dropout: 1 }), "dropout 1"],
    [
      () => definePlan(gpt, { pp: 2, globalBatch: 2, stageLayers: [48, 49] }),
      "stageLayers 48+49 = 97, but gpt3-175b has 96 layers",
    ],
    [
      () => definePlan(gpt, { pp: 2, globalBatch: 2, stageLayers: [96] }),
      "stageLayers has 1 entries",
    ],
  ];
  for (const [act, message] of cases) {
    expect(act).toThrow(message);
    expect(act).toThrow(expect.objectContaining({ code: "PLAN" }));
  }
});

test("a plan that is accepted divides what it splits", () => {
  const m = defineModel({
    layers: 12,
    hidden: 96,
    heads: 12,
    kvHeads: 6,
    vocab: 100,
    position: "rotary",
  });
  // Any other error than a refused plan fails the test.
  const accepted = (o: PlanOptions): Plan | undefined => {
    try {
      return definePlan(m, o);
    } catch (error) {
      if (error instanceof TriremeError && error.code === "PLAN") return undefined;
      throw error;
    }
  };
  const degree = fc.integer({ min: 1, max: 13 });
  fc.assert(
    fc.property(
      degree,
      degree,
      degree,
      degree,
      degree,
      fc.integer({ min: 1, max: 500 }),
      (tp, pp, dp, vpp, microbatch, globalBatch) => {
        const p = accepted({ tp, pp, dp, vpp, microbatch, globalBatch });
        if (p === undefined) return;
        expect(m.kvHeads % tp).toBe(0);
        expect(Number.isInteger(microbatches(p))).toBe(true);
        expect(pp * vpp).toBeLessThanOrEqual(12);
        expect(vpp === 1 || microbatches(p) >= pp).toBe(true);
      },
    ),
    { numRuns: 500 },
  );
});

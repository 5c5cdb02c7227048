import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type Schedule,
  actionsOf,
  dfsBfs,
  forwardOnly,
  interleaved,
  interleavedZeroBubble,
  lower,
  oneForwardOneBackward,
  replay,
  validate,
} from "@trireme/schedulers";

/** Backward twice as long as forward, as one action or in halves. */
const unit = { forward: 1, backward: 2 };
const split = { forward: 1, inputGradient: 1, weightGradient: 1 };

/** Megatron's order list: chunk + 1 for a forward, −(chunk + 1) for a backward. */
function orderList(s: Schedule, rank: number): number[] {
  return actionsOf(s, rank).map(
    (a) => (Math.floor(a.stage / s.ranks) + 1) * (a.kind === "F" ? 1 : -1),
  );
}

function warmUps(s: Schedule): number[] {
  return Array.from({ length: s.ranks }, (_, r) => orderList(s, r).findIndex((k) => k < 0) - 1);
}

describe("interleaved 1F1B against Megatron-LM", () => {
  test("groups of 3 of 5 microbatches run through 2 chunks in Megatron's order", () => {
    const forwards = actionsOf(
      interleaved({ ranks: 2, chunks: 2, microbatches: 5, groupSize: 3 }),
      0,
    ).filter((a) => a.kind === "F");
    expect(forwards.map((a) => a.microbatch)).toEqual([0, 1, 2, 0, 1, 2, 3, 4, 3, 4]);
    expect(forwards.map((a) => a.stage / 2)).toEqual([0, 0, 0, 1, 1, 1, 0, 0, 1, 1]);
  });
  test.each([
    [2, 2, 4, 2, [4, 2]],
    [4, 2, 8, 4, [10, 8, 6, 4]],
    [4, 3, 12, 4, [14, 12, 10, 8]],
    [2, 2, 5, 3, [5, 3]],
    [4, 2, 10, 5, [11, 9, 7, 5]],
  ])(
    "P %d, V %d, M %d, N %d warm up with %j",
    (ranks, chunks, microbatches, groupSize, expected) => {
      const s = interleaved({ ranks, chunks, microbatches, groupSize });
      expect(warmUps(s)).toEqual(expected);
    },
  );
  for (const [ranks, groupSize] of [
    [1, 1],
    [2, 2],
    [2, 4],
    [4, 4],
    [4, 5],
    [8, 9],
    [8, 11],
  ] as const) {
    for (const microbatches of [8, 32]) {
      for (const chunks of [1, 2, 4, 8]) {
        const rest = microbatches % groupSize;
        if (groupSize > microbatches || (rest !== 0 && rest < ranks)) continue;
        test(`the order list of P ${ranks}, N ${groupSize}, M ${microbatches}, V ${chunks} is sound`, () => {
          const s = interleaved({ ranks, chunks, microbatches, groupSize });
          expect(validate(s)).toEqual({ ok: true });
          for (let r = 0; r < ranks; r++) {
            const list = orderList(s, r);
            expect(list.length).toBe(2 * microbatches * chunks);
            expect(Math.max(...list)).toBe(chunks);
            const open = new Int32Array(chunks + 1);
            for (const k of list) {
              expect(k).not.toBe(0);
              open[Math.abs(k)]! += Math.sign(k);
              expect(open[Math.abs(k)]).toBeGreaterThanOrEqual(0);
            }
            expect([...open].every((n) => n === 0)).toBe(true);
          }
        });
      }
    }
  }
  test("one chunk is 1F1B", () => {
    const o = { ranks: 4, microbatches: 6 };
    const [a, b] = [interleaved({ ...o, chunks: 1, groupSize: 6 }), oneForwardOneBackward(o)];
    for (let r = 0; r < 4; r++) expect(actionsOf(a, r)).toEqual(actionsOf(b, r));
  });
  test("in its forward-only form all microbatches are warm-up", () => {
    const s = forwardOnly(interleaved({ ranks: 4, chunks: 2, microbatches: 8 }));
    expect(validate(s)).toEqual({ ok: true });
    expect(orderList(s, 3)).toEqual([1, 1, 1, 1, 2, 2, 2, 2, 1, 1, 1, 1, 2, 2, 2, 2]);
  });
});

describe("any number of microbatches", () => {
  const shape = {
    ranks: fc.integer({ min: 1, max: 9 }),
    chunks: fc.integer({ min: 1, max: 4 }),
    microbatches: fc.integer({ min: 1, max: 60 }),
  };

  test.each([
    ["interleaved", interleaved, unit],
    ["interleaved-zero-bubble", interleavedZeroBubble, split],
  ] as const)("is led soundly by %s, and no faster than its work allows", (_, create, costs) => {
    fc.assert(
      fc.property(fc.record(shape), ({ ranks, chunks, microbatches }) => {
        const s = create({ ranks, chunks, microbatches });
        expect(validate(s)).toEqual({ ok: true });
        expect(validate(lower(s))).toEqual({ ok: true });
        const { makespan } = replay(s, costs);
        // The last rank starts after one chunk of each other, and has all microbatches through its chunks to do.
        expect(makespan).toBeGreaterThanOrEqual(ranks - 1 + 3 * microbatches * chunks - 1e-9);
        // Groups of a microbatch for each rank or more leave the bubble of interleaving, and nothing more.
        if (create === interleaved && microbatches >= ranks) {
          expect(makespan).toBeCloseTo(3 * (microbatches * chunks + ranks - 1), 9);
        }
      }),
    );
  });

  test("falls into the smallest groups that Megatron-LM accepts, which are torch's where torch has some", () => {
    fc.assert(
      fc.property(fc.record(shape), ({ ranks, chunks, microbatches }) => {
        fc.pre(microbatches >= ranks && chunks > 1);
        const accepted = (n: number): boolean =>
          microbatches % n === 0 || microbatches % n >= ranks;
        let size = ranks;
        while (!accepted(size)) size++;
        const rounds = Math.floor(microbatches / ranks);
        if (microbatches % rounds === 0) expect(size).toBe(microbatches / rounds);
        const o = { ranks, chunks, microbatches };
        const [own, given] = [interleaved(o), interleaved({ ...o, groupSize: size })];
        for (let r = 0; r < ranks; r++) expect(actionsOf(own, r)).toEqual(actionsOf(given, r));
      }),
    );
  });
});

describe("microbatches that do not form groups are refused with the nearest that do", () => {
  test.each([
    [
      { ranks: 4, chunks: 2, microbatches: 9, groupSize: 3 },
      "group size 3 is not an integer in 4..9",
    ],
    [{ ranks: 4, chunks: 2, microbatches: 9, groupSize: 4 }, "leave 1, fewer than the 4 ranks"],
    [{ ranks: 4, chunks: 2, microbatches: 9, groupSize: NaN }, "group size NaN"],
    [{ ranks: 0, chunks: 2, microbatches: 9 }, "ranks = 0 is not an integer in 1..2^27"],
    [{ ranks: 4, chunks: 1.5, microbatches: 9 }, "chunks = 1.5"],
    [{ ranks: 2, chunks: 2, microbatches: 2 ** 32 }, "microbatches = 4294967296"],
    [{ ranks: 2 ** 14, chunks: 2, microbatches: 2 ** 14 }, "actions are more than 2^27"],
  ])("%j", (o, message) => {
    expect(() => interleaved(o)).toThrow(message);
  });
});

describe("the family between depth first and breadth first", () => {
  test("runs for every group size and number of microbatches", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 7 }),
        fc.integer({ min: 1, max: 4 }),
        fc.integer({ min: 1, max: 17 }),
        fc.nat(),
        (ranks, chunks, microbatches, k) => {
          const s = dfsBfs({ ranks, chunks, microbatches, groupSize: 1 + (k % microbatches) });
          expect(validate(s)).toEqual({ ok: true });
        },
      ),
    );
  });
  test("is interleaved 1F1B with groups as large as the ranks", () => {
    const o = { ranks: 4, chunks: 2, microbatches: 8 };
    for (let r = 0; r < 4; r++) {
      expect(actionsOf(dfsBfs(o), r)).toEqual(actionsOf(interleaved(o), r));
    }
  });
  test("hides more transfers and holds more activations with larger groups", () => {
    const costs = { forward: 1, backward: 2, pointToPoint: 0.5 };
    const runs = [4, 5, 10].map((groupSize) =>
      replay(dfsBfs({ ranks: 4, chunks: 2, microbatches: 20, groupSize }), costs),
    );
    for (const [k, r] of runs.entries()) {
      if (k === 0) continue;
      expect(r.makespan).toBeLessThan(runs[k - 1]!.makespan);
      expect(r.peak[0]).toBeGreaterThan(runs[k - 1]!.peak[0]!);
    }
  });
  test("refuses a group larger than the microbatches", () => {
    expect(() => dfsBfs({ ranks: 2, chunks: 2, microbatches: 3, groupSize: 4 })).toThrow(
      "group size 4 is not an integer in 1..3",
    );
  });
});

import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  type AnchoredSchedule,
  type ReplayCosts,
  anchorEncoder,
  createSchedule,
  lower,
  oneForwardOneBackward,
  replay,
} from "@trireme/schedulers";
import { trainingSchedule } from "./random-schedule.ts";

const unit: ReplayCosts = { forward: 1, inputGradient: 1, weightGradient: 1 };
const total = (xs: Iterable<number>): number => [...xs].reduce((a, b) => a + b, 0);

/** Pieces and actions of every rank follow each other without overlap; dependencies hold. */
function expectSound(a: AnchoredSchedule, pieces: number): void {
  const { schedule: s } = a;
  for (let r = 0; r < s.ranks; r++) {
    const busy: [number, number][] = [];
    for (let i = s.offsets[r]!; i < s.offsets[r + 1]!; i++) {
      if (s.overlap[i] !== 2) busy.push([a.starts[i]!, a.ends[i]!]);
    }
    for (const [k, rank] of a.pieces.rank.entries()) {
      if (rank !== r) continue;
      busy.push([a.pieces.starts[k]!, a.pieces.ends[k]!]);
      const anchor = a.pieces.anchor[k]!;
      if (anchor < s.offsets[r + 1]!)
        expect(a.starts[anchor]).toBeGreaterThanOrEqual(a.pieces.ends[k]!);
      if (anchor > s.offsets[r]!)
        expect(a.ends[anchor - 1]).toBeLessThanOrEqual(a.pieces.starts[k]!);
    }
    busy.sort((x, y) => x[0] - y[0] || x[1] - y[1]);
    for (const [k, [start]] of busy.entries()) {
      if (k > 0) expect(start).toBeGreaterThanOrEqual(busy[k - 1]![1]);
    }
  }
  const chain = s.stages / s.directions;
  for (let i = 0; i < s.kind.length; i++) {
    if (s.stage[i]! % chain !== 0) continue;
    const mine = [...a.pieces.rank.keys()].filter(
      (k) => a.pieces.microbatch[k] === s.microbatch[i],
    );
    const forward = mine.filter((k) => a.pieces.backward[k] === 0);
    const backward = mine.filter((k) => a.pieces.backward[k] === 1);
    if (s.kind[i] === 0) {
      expect(forward.length).toBe(pieces);
      for (const k of forward) expect(a.pieces.ends[k]).toBeLessThanOrEqual(a.starts[i]!);
    } else if (s.kind[i] === 1 || s.kind[i] === 3) {
      expect(backward.length).toBe(pieces);
      for (const k of backward) expect(a.pieces.starts[k]).toBeGreaterThanOrEqual(a.ends[i]!);
    }
  }
}

describe("encoder work in a language-model pipeline", () => {
  test.each(["1f1b", "interleaved", "zb-v", "dualpipe", "gpipe"])(
    "does not widen the bubbles of %s as the encoder grows",
    (name) => {
      const ranks = 4;
      const s = createSchedule(name, {
        ranks,
        microbatches: 16,
        ...(name === "interleaved" ? { chunks: 2 } : {}),
      });
      const alone = replay(s, unit);
      for (const encoder of [0.25, 0.5, 1, 2, 4, 8]) {
        const work = { forward: encoder, backward: 2 * encoder };
        const a = anchorEncoder(s, unit, work);
        expectSound(a, ranks);
        const all = total(alone.busy) + 16 * 3 * encoder;
        const bound = Math.max(alone.makespan, all / ranks);
        // The bound takes no account of when bubbles come: half of GPipe's come after all forwards.
        expect(a.makespan).toBeLessThanOrEqual((name === "gpipe" ? 1.1 : 1.04) * bound);
        expect(total(a.idle) / ranks).toBeLessThanOrEqual(total(alone.idle) / ranks + 1e-9);
        // The first stage alone would be far slower.
        const first = replay(s, {
          ...unit,
          forward: (stage) => 1 + (stage === 0 ? encoder : 0),
          inputGradient: (stage) => 1 + (stage === 0 ? 2 * encoder : 0),
        });
        expect(a.makespan).toBeLessThan(first.makespan);
      }
    },
  );
  test("fills bubbles for nothing while it is small", () => {
    const s = oneForwardOneBackward({ ranks: 4, microbatches: 16 });
    const a = anchorEncoder(s, unit, { forward: 0.5, backward: 1 });
    // 24 s of encoder cost the step 3/8 s: the first piece, and the tail of the last backward.
    expect(a.languageMakespan).toBe(57);
    expect(a.makespan).toBeLessThanOrEqual(57.375);
  });
  test("is sound for any schedule, microbatches that differ and a limit on running ahead", () => {
    fc.assert(
      fc.property(
        trainingSchedule,
        fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 1, max: 5 }),
        fc.constantFrom(1, 2, Infinity),
        (s, sizes, pieces, ahead) => {
          const size = (m: number): number => sizes[m % sizes.length]! / 8;
          const costs: ReplayCosts = {
            forward: (_, m) => 0.5 + size(m) / 4,
            inputGradient: (_, m) => 0.5 + size(m) / 4,
            weightGradient: 0.5,
            pointToPoint: 0.125,
          };
          const work = {
            forward: size,
            backward: (m: number) => 2 * size(m),
            pieces,
            ahead,
            transfer: 0.25,
          };
          const a = anchorEncoder(s, costs, work);
          expectSound(a, pieces);
          expect(a.makespan).toBeGreaterThanOrEqual(a.languageMakespan - 1e-9);
        },
      ),
      { numRuns: 60 },
    );
  });
  test("a frozen encoder has no backward, an empty one changes nothing", () => {
    const s = oneForwardOneBackward({ ranks: 2, microbatches: 4 });
    expect(anchorEncoder(s, unit, { forward: 1 }).pieces.backward.includes(1)).toBe(false);
    expect(anchorEncoder(s, unit, { forward: 0 }).makespan).toBe(replay(s, unit).makespan);
  });
  test("refuses lowered schedules and bad costs", () => {
    const s = oneForwardOneBackward({ ranks: 2, microbatches: 4 });
    expect(() => anchorEncoder(lower(s), unit, { forward: 1 })).toThrow(
      "anchor the encoder first, then lower",
    );
    expect(() => anchorEncoder(s, unit, { forward: () => -1 })).toThrow(
      "encoder forward of microbatch 0 is -1",
    );
    expect(() => anchorEncoder(s, unit, { forward: 1, pieces: 0 })).toThrow("encoder pieces = 0");
    expect(() => anchorEncoder(s, unit, { forward: 1, ahead: 0 })).toThrow("encoder ahead = 0");
    expect(() => anchorEncoder(s, unit, { forward: 1, transfer: -1 })).toThrow(
      "encoder transfer is -1",
    );
  });
});

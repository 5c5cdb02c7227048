import { createRng, hours, minutes } from "@trireme/core";
import {
  clusterGoodput,
  effectiveTrainingTime,
  ettrBetween,
  failureLoss,
  jobEttr,
  slidingEttr,
} from "@trireme/fault-tolerance";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

describe("effective training time", () => {
  it("is iterations × iteration time / total time (MegaScale)", () => {
    expect(effectiveTrainingTime(900, 10, 10_000)).toBe(0.9);
    expect(effectiveTrainingTime(0, 10, 1)).toBe(0);
    expect(() => effectiveTrainingTime(1, 1, 0)).toThrow("a total above 0");
  });
});

describe("ETTR", () => {
  const spans = [
    { start: 10, end: 40 },
    { start: 50, end: 100 },
  ];

  it("cumulative is the productive share so far", () => {
    expect(ettrBetween(spans, 0, 100)).toBe(0.8);
    expect(ettrBetween(spans, 0, 10)).toBe(0);
    expect(ettrBetween(spans, 20, 30)).toBe(1);
    expect(ettrBetween(spans, 35, 55)).toBe(0.5);
    expect(ettrBetween([], 0, 1)).toBe(0);
    expect(() => ettrBetween(spans, 5, 5)).toThrow("is empty");
  });

  it("sliding dips by an incident and comes back once the window has passed it", () => {
    // A stop of 12 minutes at 2 h: one hour's window loses a fifth of itself and no more.
    const run = [
      { start: 0, end: hours(2) },
      { start: hours(2) + minutes(12), end: hours(5) },
    ];
    const at = [0.5, 2, 2.2, 2.6, 3, 3.1, 3.2, 4].map(hours);
    const window = slidingEttr(run, at, hours(1));
    expect(window[0]).toBe(1);
    for (const [i, expected] of [1, 1, 0.8, 0.8, 0.8, 0.9, 1, 1].entries()) {
      expect(window[i]).toBeCloseTo(expected, 12);
    }
    expect(ettrBetween(run, 0, hours(4))).toBeCloseTo(0.95, 12);
    expect(() => slidingEttr(run, [0], 1)).toThrow("not after the start");
    expect(() => slidingEttr(run, [1], 0)).toThrow("window = 0");
  });

  it("sliding equals a plain sum over all spans, in whatever order they come", () => {
    fc.assert(
      fc.property(
        fc.array(fc.integer({ min: 1, max: 50 }), { maxLength: 24 }),
        fc.integer({ min: 1, max: 400 }),
        fc.array(fc.integer({ min: 1, max: 1500 }), { minLength: 1, maxLength: 8 }),
        fc.integer(),
        (gaps, window, samples, seed) => {
          let time = 0;
          const list = gaps.flatMap((gap, i) => {
            time += gap;
            return i % 2 === 0 ? [] : [{ start: time - gap, end: time }];
          });
          const rng = createRng(seed);
          const shuffled = list
            .map((span) => ({ span, key: rng.float() }))
            .toSorted((a, b) => a.key - b.key)
            .map((each) => each.span);
          const plain = samples.map((at) => {
            const from = Math.max(0, at - window);
            let sum = 0;
            for (const { start, end } of list) {
              sum += Math.max(0, Math.min(end, at) - Math.max(start, from));
            }
            return sum / (at - from);
          });
          // Sums of small integers are exact in float64.
          expect(slidingEttr(shuffled, samples, window)).toEqual(plain);
        },
      ),
    );
  });

  it("refuses spans that overlap: time would count twice", () => {
    const double = [...spans, { start: 30, end: 60 }];
    expect(() => ettrBetween(double, 0, 100)).toThrow("overlaps the one that ends at 40 s");
    expect(() => ettrBetween([{ start: 2, end: 1 }], 0, 100)).toThrow("ends before its start");
  });
});

describe("goodput", () => {
  const job = { gpus: 100, queued: 10, productive: 80, unproductive: 10 };

  it("of a job is R / (Q + R + U), and of a cluster productive over all GPU time", () => {
    expect(jobEttr(job)).toBe(0.8);
    expect(clusterGoodput([job, { ...job, gpus: 50 }], 200, 100)).toBe(0.6);
    expect(() => jobEttr({ gpus: 1, queued: 0, productive: 0, unproductive: 0 })).toThrow("Q + R");
    expect(() => clusterGoodput([job], 10, 100)).toThrow("9000 GPU-seconds, but 10 GPUs");
  });

  it("lost to a failure is half an interval, or the run where that is shorter (RSC)", () => {
    expect(failureLoss(hours(5), 1024)).toBe(1024 * 1800);
    expect(failureLoss(minutes(10), 1024)).toBe(1024 * 600);
    expect(failureLoss(hours(5), 8, minutes(10))).toBe(8 * 300);
    expect(() => failureLoss(-1, 8)).toThrow("8 GPUs after -1 s");
  });
});

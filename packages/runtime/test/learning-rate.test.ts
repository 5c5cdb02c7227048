import { type LearningRateOptions, learningRate } from "@trireme/runtime";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const base = { learningRate: 1, minimumLearningRate: 0.1, warmup: 4, steps: 24 } as const;
const schedules = ["constant", "cosine", "linear", "inverse-sqrt", "wsd"] as const;

function rates(options: LearningRateOptions): number[] {
  return Array.from({ length: options.steps }, (_, step) => learningRate(options, step));
}

describe("every schedule", () => {
  it.each(schedules)("%s warms up in a straight line to its peak", (schedule) => {
    const first = rates({ ...base, schedule }).slice(0, 5);
    for (const [step, rate] of first.entries()) expect(rate).toBeCloseTo((step + 1) / 5, 12);
  });

  it.each(["cosine", "linear", "wsd"] as const)(
    "%s ends at its minimum and stays there",
    (schedule) => {
      expect(learningRate({ ...base, schedule }, 24)).toBeCloseTo(0.1, 12);
      expect(learningRate({ ...base, schedule }, 1e9)).toBeCloseTo(0.1, 12);
    },
  );

  it.each(schedules)(
    "%s never leaves the band between 0 and the peak, whatever its numbers",
    (schedule) => {
      const options = fc.record({
        learningRate: fc.double({ min: 1e-6, max: 10, noNaN: true }),
        floor: fc.double({ min: 0, max: 1, noNaN: true }),
        warmup: fc.nat(50),
        steps: fc.integer({ min: 1, max: 100 }),
        decay: fc.integer({ min: 1, max: 100 }),
      });
      fc.assert(
        fc.property(options, fc.nat(200), ({ floor, ...o }, step) => {
          const minimumLearningRate = floor * o.learningRate;
          const rate = learningRate({ ...o, minimumLearningRate, schedule }, step);
          expect(rate).toBeGreaterThanOrEqual(0);
          expect(rate).toBeLessThanOrEqual(o.learningRate * (1 + 1e-12));
          const ends = schedule !== "constant" && schedule !== "inverse-sqrt";
          const ended = ends && step >= Math.max(o.steps, o.warmup);
          expect(ended ? rate : minimumLearningRate).toBeCloseTo(minimumLearningRate, 9);
        }),
      );
    },
  );

  it.each(schedules)("%s refuses a step that is no integer from 0 up", (schedule) => {
    for (const step of [-1, 0.5, Number.NaN]) {
      expect(() => learningRate({ ...base, schedule }, step)).toThrow(/step .* must be an integer/);
    }
  });
});

describe("the shapes", () => {
  it("cosine is nanoGPT's: half way down in the middle", () => {
    const schedule = { ...base, schedule: "cosine" } as const;
    expect(learningRate(schedule, 14)).toBeCloseTo(0.55, 12);
    expect(learningRate(schedule, 9)).toBeCloseTo(0.1 + 0.9 * 0.5 * (1 + Math.SQRT1_2), 12);
  });

  it("linear falls by the same amount each step", () => {
    const after = rates({ ...base, schedule: "linear" }).slice(4);
    for (const [i, rate] of after.entries()) expect(rate).toBeCloseTo(1 - (0.9 * i) / 20, 12);
  });

  it("wsd is flat until its decay, a fifth of the steps by default", () => {
    const all = rates({ ...base, schedule: "wsd", steps: 100 });
    expect(all.slice(4, 81).every((rate) => rate === 1)).toBe(true);
    expect(all[90]).toBeCloseTo(0.55, 12);
    expect(rates({ ...base, schedule: "wsd", steps: 100, decay: 50 })[75]).toBeCloseTo(0.55, 12);
  });

  it("wsd decays in a line, a cosine, or as one minus a root", () => {
    const wsd = { ...base, schedule: "wsd", minimumLearningRate: 0, steps: 100 } as const;
    const quarter = (decayShape: "linear" | "cosine" | "sqrt"): number =>
      learningRate({ ...wsd, decayShape }, 85);
    expect(quarter("linear")).toBeCloseTo(0.75, 12);
    expect(quarter("cosine")).toBeCloseTo((1 + Math.SQRT1_2) / 2, 12);
    expect(quarter("sqrt")).toBeCloseTo(0.5, 12);
  });

  it("inverse-sqrt halves when the steps quadruple, and has a floor", () => {
    const schedule = { ...base, warmup: 99, schedule: "inverse-sqrt", steps: 1000 } as const;
    expect(learningRate(schedule, 99)).toBe(1);
    expect(learningRate(schedule, 399)).toBeCloseTo(0.5, 12);
    expect(learningRate(schedule, 1e6)).toBe(0.1);
  });

  it("constant is constant, and a minimum is 0 unless stated", () => {
    expect(new Set(rates({ ...base, schedule: "constant" }).slice(4))).toEqual(new Set([1]));
    const { minimumLearningRate: _, ...bare } = base;
    expect(learningRate({ ...bare, schedule: "linear" }, 24)).toBe(0);
  });

  it("a run of one step has its peak", () => {
    for (const schedule of schedules) {
      expect(learningRate({ ...base, warmup: 0, steps: 1, schedule }, 0)).toBe(1);
    }
  });
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { createRng } from "@trireme/core";
import {
  type FailureCost,
  availabilityPeriod,
  boundedSteps,
  checkpointEfficiency,
  dalyInterval,
  optimalInterval,
  youngInterval,
} from "@trireme/checkpoint";

test("Young and Daly give the published values", () => {
  // [cost, mean time between failures, Young, Daly], seconds, to the two decimals printed.
  for (const [cost, mtbf, young, daly] of [
    [300, 86_400, 7200, 7001.39],
    [10, 6000, 346.41, 339.78],
    [60, 10_800, 1138.42, 1098.77],
  ] as const) {
    expect(youngInterval(cost, mtbf)).toBeCloseTo(young, 2);
    expect(dalyInterval(cost, mtbf)).toBeCloseTo(daly, 2);
  }
  expect(dalyInterval(300, 21_600)).toBeCloseTo(3402.78, 2);
  expect(dalyInterval(300, 900)).toBeCloseTo(548.46, 2);
  // At twice the mean time between failures and beyond it is that time.
  expect(dalyInterval(1800, 900)).toBe(900);
});

test("the exact efficiency gives the published values", () => {
  const cost = { blocking: 60, mtbf: 10_800, recovery: 600 };
  for (const [interval, efficiency, digits] of [
    [600, 0.834, 3],
    [1138, 0.8497, 4],
    [1800, 0.8389, 4],
    [3600, 0.7817, 4],
  ] as const) {
    expect(checkpointEfficiency(interval, cost)).toBeCloseTo(efficiency, digits);
  }
});

test("the availability period is where first-order availability is greatest", () => {
  const [save, mtbf, recovery] = [60, 10_800, 600];
  const availability = (t: number): number => ((1 - save / t) * mtbf) / (mtbf + recovery + t / 2);
  const best = availabilityPeriod(save, mtbf, recovery);
  for (const t of [0.9, 0.99, 1.01, 1.1]) {
    expect(availability(best * t)).toBeLessThan(availability(best));
  }
  expect(availabilityPeriod(0, mtbf)).toBe(0);
});

const costs = fc.record({
  blocking: fc.double({ min: 0.001, max: 3000, noNaN: true }),
  overlapped: fc.double({ min: 0, max: 3000, noNaN: true }),
  slowdown: fc.double({ min: 0, max: 0.9, noNaN: true }),
  mtbf: fc.double({ min: 50, max: 1e7, noNaN: true }),
  recovery: fc.double({ min: 0, max: 1000, noNaN: true }),
});

test("no interval beats the optimal one", () => {
  fc.assert(
    fc.property(costs, fc.double({ min: 1e-3, max: 100, noNaN: true }), (cost, factor) => {
      const best = optimalInterval(cost);
      const other = best * factor;
      if (other < cost.overlapped - cost.blocking) return;
      // Rounding: both sides are computed to about 1e-15.
      const [ours, theirs] = [best, other].map((interval) => checkpointEfficiency(interval, cost));
      expect(theirs!).toBeLessThanOrEqual(ours! * (1 + 1e-9));
    }),
    {
      examples: [
        [
          // Whose shortest interval and blocking add up to less than a save takes, rounded.
          {
            blocking: 143.33616328927224,
            overlapped: 2999.999999999995,
            slowdown: 0,
            mtbf: 6653,
            recovery: 0,
          },
          39,
        ],
      ],
    },
  );
});

test("the optimum is Daly's where failures are rare, and one save in flight bounds it", () => {
  const cost = { blocking: 60, mtbf: 1e7 };
  // Daly's series is good to (δ/M)^(3/2) of the optimum.
  expect(optimalInterval(cost) / dalyInterval(60, 1e7)).toBeCloseTo(1, 6);
  expect(optimalInterval({ blocking: 5, overlapped: 4000, mtbf: 1e5 })).toBe(3995);
  expect(optimalInterval({ blocking: 0, overlapped: 40, mtbf: 1e5 })).toBe(40);
  // Costs far above the time between failures: nearly nothing gets through, but an optimum there is.
  expect(optimalInterval({ blocking: 5000, mtbf: 100 })).toBeCloseTo(100, 9);
});

/** Plays periods and failures one by one; lasting work divided by time. */
function simulated(interval: number, cost: Required<FailureCost>, periods: number): number {
  const { blocking, overlapped, slowdown, mtbf, recovery } = cost;
  const rng = createRng(7);
  let time = 0;
  let failure = 0;
  const nextFailure = (): void => {
    failure = time - mtbf * Math.log(1 - rng.float());
  };
  nextFailure();
  let taken = 0;
  let durable = 0;
  let durableAt = 0;
  while (durable < periods) {
    const end = time + interval + blocking;
    if (durable < taken && durableAt <= Math.min(failure, end)) durable = taken;
    if (failure >= end) {
      time = end;
      taken++;
      durableAt = end + overlapped;
      continue;
    }
    taken = durable;
    for (;;) {
      time = failure;
      nextFailure();
      if (failure >= time + recovery) break;
    }
    time += recovery;
  }
  return (durable * (interval - slowdown * overlapped)) / time;
}

test("playing failures one by one gives the exact efficiency, with and without overlap", () => {
  for (const [interval, cost] of [
    [600, { blocking: 60, overlapped: 0, slowdown: 0, mtbf: 3000, recovery: 300 }],
    [600, { blocking: 10, overlapped: 500, slowdown: 0.1, mtbf: 3000, recovery: 300 }],
    [100, { blocking: 0, overlapped: 100, slowdown: 0, mtbf: 500, recovery: 0 }],
  ] as const) {
    // 10^5 periods: the standard error is below 0.3 % of the value.
    const exact = checkpointEfficiency(interval, cost);
    expect(simulated(interval, cost, 100_000) / exact).toBeCloseTo(1, 2);
  }
});

test("steps between saves keep the stall within bounds and one save in flight", () => {
  // 0.07 s of stall at 3.5 % of 0.2 s steps: every 10.
  expect(boundedSteps({ blocking: 0.07, step: 0.2, overhead: 0.035 })).toBe(10);
  expect(boundedSteps({ blocking: 0.07, overlapped: 3.07, step: 0.2, overhead: 0.035 })).toBe(15);
  expect(boundedSteps({ blocking: 0, step: 1, overhead: 0.1 })).toBe(1);
});

test("times that cannot be are refused with the value and the rule", () => {
  expect(() => youngInterval(-1, 10)).toThrow("blocking -1: it is a time of at least 0 seconds");
  expect(() => dalyInterval(1, 0)).toThrow("mtbf 0: it is a time above 0");
  expect(() => availabilityPeriod(1, 1, Number.NaN)).toThrow("recovery NaN");
  const cost = { blocking: 1, overlapped: 50, mtbf: 100 };
  expect(() => checkpointEfficiency(10, cost)).toThrow("use 49 or more");
  expect(() => checkpointEfficiency(0, { blocking: 1, mtbf: 100 })).toThrow("interval 0");
  expect(() => optimalInterval({ blocking: 0, mtbf: 100 })).toThrow("save every step");
  expect(() => optimalInterval({ ...cost, slowdown: 1 })).toThrow("slowdown 1: it is in [0, 1)");
  expect(() => boundedSteps({ blocking: 1, step: 0, overhead: 0.1 })).toThrow("step 0");
  expect(() => boundedSteps({ blocking: 1, step: 1, overhead: 0 })).toThrow("overhead 0");
  expect(checkpointEfficiency(50, { ...cost, slowdown: 0.99 })).toBeGreaterThan(0);
  // So long a period that it overflows: nothing is saved.
  expect(checkpointEfficiency(1e9, { blocking: 1, mtbf: 1 })).toBe(0);
});

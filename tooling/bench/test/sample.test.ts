import { expect, test } from "vitest";
import { type Clocks, pick, sample } from "../src/sample.ts";

/** Clocks that move only when the work says so; the wall runs at twice the CPU's pace. */
function fakeClocks(): Clocks & { work: (seconds: number) => void } {
  let now = 0;
  return { cpu: () => now, wall: () => 2 * now, work: (seconds) => void (now += seconds) };
}

test("the figure of a timed call is its least seconds, short calls batched", async () => {
  const clocks = fakeClocks();
  let calls = 0;
  // Every seventh call takes three times as long: noise that a batch of one would not be rid of.
  const time = (): void => clocks.work(calls++ % 7 === 6 ? 3 : 1);
  expect(await sample({ time }, { better: "lower", repeats: 10 }, clocks)).toBe(1);

  let short = 0;
  const brief = { time: (): void => void (clocks.work(1e-5), short++) };
  // Sums of a hundred thousandths round: to nine digits.
  expect(await sample(brief, { better: "lower" }, clocks)).toBeCloseTo(1e-5, 9);
  expect(short).toBeGreaterThan(10 * 2000);
});

test("an amount makes it a rate, and the clock may be the wall", async () => {
  const clocks = fakeClocks();
  const subject = { time: () => Promise.resolve(clocks.work(0.5)) };
  expect(await sample(subject, { better: "higher", amount: 100 }, clocks)).toBe(200);
  expect(await sample(subject, { better: "higher", amount: 100, clock: "wall" }, clocks)).toBe(100);
});

test("long calls are sampled twice at least and stop at the budget", async () => {
  const clocks = fakeClocks();
  let calls = 0;
  const time = (): void => void (clocks.work(10), calls++);
  await sample({ time }, { better: "lower" }, clocks);
  expect(calls).toBe(3);
});

test("a measured figure is the median or the best of its samples, or cannot be had", async () => {
  const values = [5, 1, 9];
  const subject = () => {
    let i = 0;
    return { measure: () => values[i++] };
  };
  const clocks = fakeClocks();
  expect(await sample(subject(), { better: "lower" }, clocks)).toBe(5);
  expect(await sample(subject(), { better: "lower", repeats: 3 }, clocks)).toBe(5);
  expect(await sample(subject(), { better: "lower", repeats: 3, statistic: "best" }, clocks)).toBe(
    1,
  );
  expect(await sample(subject(), { better: "higher", repeats: 3, statistic: "best" }, clocks)).toBe(
    9,
  );
  expect(await sample({ measure: () => undefined }, { better: "lower" }, clocks)).toBeUndefined();
  await expect(sample({ measure: () => Number.NaN }, { better: "lower" }, clocks)).rejects.toThrow(
    "no figure",
  );
});

test("the median of an even number of values is the mean of the middle two", () => {
  expect(pick([4, 1, 3, 2], "median", "lower")).toBe(2.5);
  expect(pick([3, 1, 2], "median", "lower")).toBe(2);
  expect(pick([7], "median", "lower")).toBe(7);
});

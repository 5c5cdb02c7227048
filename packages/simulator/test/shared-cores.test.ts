import fc from "fast-check";
import { expect, test } from "vitest";
import { SharedCores } from "@trireme/simulator";

interface Job {
  readonly start: number;
  readonly work: number;
}

const long: Job = { start: 1, work: 3 };

/** Jobs run alone, in small steps of time: the obvious way, to test against. */
function bruteForce(cores: number, jobs: readonly Job[], step: number): number[] {
  const left = jobs.map((job) => job.work);
  const ends = jobs.map(() => Number.NaN);
  for (let tick = 0; ends.some(Number.isNaN); tick++) {
    const now = tick * step;
    const running = jobs.map((_, i) => i).filter((i) => jobs[i]!.start <= now && left[i]! > 0);
    for (const i of running) {
      left[i]! -= step * Math.min(1, cores / running.length);
      if (left[i]! <= 1e-9) {
        left[i] = 0;
        ends[i] = now + step;
      }
    }
  }
  return ends;
}

/** The same jobs on the pool. */
function shared(cores: number, jobs: readonly Job[]): number[] {
  const pool = new SharedCores(cores);
  const ends = jobs.map(() => Number.NaN);
  const waiting = jobs.map((job, id) => ({ ...job, id })).sort((a, b) => a.start - b.start);
  while (waiting.length > 0 || pool.running > 0) {
    const next = pool.next();
    if (waiting.length > 0 && waiting[0]!.start < next) {
      const job = waiting.shift()!;
      pool.start(job.start, job.id, job.work);
    } else {
      ends[pool.finish(next)] = next;
    }
  }
  return ends;
}

test("four jobs on two cores run at half speed, two at full speed", () => {
  expect(shared(2, [long, long, long, long])).toEqual([7, 7, 7, 7]);
  expect(shared(2, [long, long])).toEqual([4, 4]);
  // Three at 2/3 until the short one is over, then two at full speed.
  expect(shared(2, [long, long, { start: 1, work: 1 }])).toEqual([4.5, 4.5, 2.5]);
});

test("processor sharing agrees with stepping through time", () => {
  const job = fc.record({
    start: fc.integer({ min: 0, max: 20 }).map((n) => n / 4),
    work: fc.integer({ min: 1, max: 12 }).map((n) => n / 4),
  });
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 3 }),
      fc.array(job, { minLength: 1, maxLength: 6 }),
      (cores, jobs) => {
        const step = 1 / 256;
        const slow = bruteForce(cores, jobs, step);
        // Brute force ends a job up to one step late, which delays others by at most as much each.
        shared(cores, jobs).forEach((end, i) => {
          expect(Math.abs(end - slow[i]!)).toBeLessThanOrEqual(jobs.length * step);
        });
      },
    ),
    { numRuns: 50 },
  );
});

test("the cores are never idle while jobs wait: all work is done in work / cores when all are busy", () => {
  const work = fc.array(fc.double({ min: 0.1, max: 9, noNaN: true }), {
    minLength: 5,
    maxLength: 9,
  });
  fc.assert(
    fc.property(work, (works) => {
      const ends = shared(
        1,
        works.map((w) => ({ start: 0, work: w })),
      );
      const total = works.reduce((a, b) => a + b, 0);
      expect(Math.max(...ends)).toBeCloseTo(total, 9);
    }),
  );
});

test("no cores and no job are refused", () => {
  expect(() => new SharedCores(0)).toThrow("0 shared cores");
  expect(() => new SharedCores(2).finish(1)).toThrow("no job runs");
  expect(new SharedCores(2).next()).toBe(Infinity);
});

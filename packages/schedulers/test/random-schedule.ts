/** Arbitrary schedules and costs for property tests. */
import fc from "fast-check";
import {
  type ReplayCosts,
  type Schedule,
  chimera,
  createSchedule,
  scheduleNames,
} from "@trireme/schedulers";
import { TriremeError } from "@trireme/core";

/** A schedule of any name; counts that the schedule cannot have are left out. */
export const anySchedule: fc.Arbitrary<Schedule> = fc
  .record({
    name: fc.constantFrom(...scheduleNames),
    ranks: fc.integer({ min: 1, max: 6 }),
    chunks: fc.integer({ min: 1, max: 3 }),
    microbatches: fc.integer({ min: 1, max: 14 }),
  })
  .map(({ name, ranks, chunks, microbatches }) => {
    for (const o of [
      { ranks, chunks, microbatches },
      { ranks, microbatches },
    ]) {
      try {
        return createSchedule(name, o);
      } catch (error) {
        if (!(error instanceof TriremeError) || error.code !== "SCHEDULE") throw error;
      }
    }
    return chimera({ ranks, microbatches: 2 * microbatches });
  });

/** Any schedule that trains. */
export const trainingSchedule: fc.Arbitrary<Schedule> = anySchedule.filter((s) => !s.forwardOnly);

/** Costs in eighths, so that sums are exact. */
const eighths = (min: number, max: number): fc.Arbitrary<number> =>
  fc.integer({ min: 8 * min, max: 8 * max }).map((n) => n / 8);

/** Costs that differ by stage and microbatch, without transfers. */
export const anyCosts: fc.Arbitrary<ReplayCosts> = fc
  .record({
    forward: fc.array(eighths(0, 4), { minLength: 1, maxLength: 7 }),
    input: fc.array(eighths(0, 4), { minLength: 1, maxLength: 5 }),
    weight: fc.array(eighths(0, 4), { minLength: 1, maxLength: 3 }),
  })
  .map(({ forward, input, weight }) => ({
    forward: (s, m) => forward[(3 * s + m) % forward.length]!,
    inputGradient: (s, m) => input[(s + 2 * m) % input.length]!,
    weightGradient: (s, m) => weight[(s + m) % weight.length]!,
  }));

/** torch's grid of pipeline shapes, and what holds at each of its points. */
import { TriremeError } from "@trireme/core";
import { expect } from "vitest";
import {
  type Schedule,
  createSchedule,
  forwardOnly,
  lower,
  replay,
  validate,
} from "@trireme/schedulers";

/** (V, M, P): stages per rank, microbatches, ranks, as torch.distributed.pipelining tests them. */
export const torchGrid = [
  [2, 2, 2],
  [2, 4, 4],
  [2, 8, 2],
  [2, 8, 4],
  [2, 8, 8],
  [4, 4, 4],
  [4, 8, 4],
  [4, 8, 8],
  [4, 16, 4],
  [4, 32, 4],
  [4, 64, 4],
  [4, 16, 16],
  [4, 32, 32],
  [4, 128, 64],
  [3, 2, 2],
  [3, 8, 2],
  [3, 12, 4],
  [4, 6, 3],
  [4, 10, 5],
  [2, 3, 4],
  [2, 4, 4],
  [2, 10, 4],
  [2, 15, 4],
] as const;

/** What a refusal may say: the constraint that the counts violate. */
const constraints =
  /has [12] stages? per rank, not|do not divide into|needs (an even|at least)|is odd/;

function create(name: string, V: number, M: number, P: number): Schedule | undefined {
  try {
    return createSchedule(name, { ranks: P, chunks: V, microbatches: M });
  } catch (error) {
    expect(error).toBeInstanceOf(TriremeError);
    expect(String(error)).toMatch(constraints);
    return undefined;
  }
}

const unit = { forward: 1, inputGradient: 1, weightGradient: 1 };

/** Checks a schedule at points of the grid; the number of schedules that were not refused. */
export function checkGrid(
  name: string,
  points: readonly (readonly [number, number, number])[],
): number {
  let valid = 0;
  for (const [V, M, P] of points) {
    for (const chunks of new Set([V, 1, 2])) {
      const s = create(name, chunks, M, P);
      if (s === undefined) continue;
      valid++;
      expect(validate(s)).toEqual({ ok: true });
      const l = lower(s);
      expect(validate(l)).toEqual({ ok: true });
      expect(replay(l, unit).makespan).toBe(replay(s, unit).makespan);
      const early = lower(s, { receives: "early" });
      expect(validate(early, { sends: "rendezvous" })).toEqual({ ok: true });
      expect(validate(forwardOnly(s))).toEqual({ ok: true });
    }
  }
  return valid;
}

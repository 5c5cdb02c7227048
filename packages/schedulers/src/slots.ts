/**
 * Time slots for a schedule when every action takes one, as torch's simulator counts steps: each
 * rank runs its next action as soon as its inputs are there, a receive in the slot of its send at
 * the earliest. For grids: CSV files, text pictures.
 */
import { TriremeError } from "@trireme/core";
import { kindCode } from "./action.ts";
import { describeDeadlock } from "./deadlock.ts";
import { isLowered } from "./messages.ts";
import { type Schedule, stagesPerDirection } from "./schedule.ts";

/** The schedule with its `slot` column set. Both halves of an overlapped pair share a slot. */
export function withSlots(s: Schedule): Schedule {
  const {
    ranks,
    stages,
    microbatches: M,
    kind,
    stage,
    microbatch,
    overlap,
    offsets,
    stageRank,
  } = s;
  const chain = stagesPerDirection(s);
  const lowered = isLowered(s);
  const slot = new Int32Array(kind.length);
  // Slot in which an output was made, or sent if the schedule has sends, plus 1; 0: not yet.
  const made = new Int32Array(2 * stages * M);
  const sent = new Int32Array(2 * stages * M);
  const positions = offsets.slice(0, ranks);
  const ready = (i: number, r: number, now: number): boolean => {
    const [k, st, m] = [kind[i]!, stage[i]!, microbatch[i]!];
    const key = 2 * (st * M + m);
    switch (k) {
      case kindCode.F:
      case kindCode.I:
      case kindCode.B: {
        const half = k === kindCode.F ? 0 : 1;
        if (half === 1 && made[key] === 0) return false;
        const from = half === 0 ? st - 1 : st + 1;
        if (from < 0 || from >= stages || Math.floor(from / chain) !== Math.floor(st / chain))
          return true;
        const there = stageRank[from] === r || !lowered ? made : sent;
        const end = there[2 * (from * M + m) + half]!;
        return end !== 0 && end <= now;
      }
      case kindCode.RECV_F:
        return sent[2 * ((st - 1) * M + m)] !== 0;
      case kindCode.RECV_B:
        return sent[2 * ((st + 1) * M + m) + 1] !== 0;
      default:
        return true;
    }
  };
  const run = (i: number, now: number): void => {
    const [k, key] = [kind[i]!, 2 * (stage[i]! * M + microbatch[i]!)];
    slot[i] = now;
    if (k === kindCode.F) made[key] = now + 1;
    else if (k === kindCode.I || k === kindCode.B) made[key + 1] = now + 1;
    else if (k === kindCode.SEND_F) sent[key] = now + 1;
    else if (k === kindCode.SEND_B) sent[key + 1] = now + 1;
  };
  const ran = new Int32Array(ranks).fill(-1);
  for (let left = kind.length, now = 0; left > 0; now++) {
    let progress = false;
    // The second pass gives a rank the slot if a later rank has just sent what it waited for.
    for (let pass = 0; pass < 2; pass++) {
      for (let r = 0; r < ranks; r++) {
        const i = positions[r]!;
        if (i >= offsets[r + 1]! || ran[r] === now) continue;
        const count = overlap[i] === 1 ? 2 : 1;
        if (!ready(i, r, now) || (count === 2 && !ready(i + 1, r, now))) continue;
        for (let j = i; j < i + count; j++) run(j, now);
        positions[r] = i + count;
        ran[r] = now;
        left -= count;
        progress = true;
      }
    }
    if (!progress)
      throw new TriremeError("DEADLOCK", `${s.name}: ${describeDeadlock(s, positions)}`);
  }
  return { ...s, slot };
}

/**
 * Slots of a schedule with a `slot` column: the last one plus 1.
 * @throws TriremeError `SLOTS` for a schedule without one.
 */
export function slotCount(s: Schedule): number {
  if (s.slot === undefined)
    throw new TriremeError("SLOTS", `${s.name} has no time slots; withSlots gives it some`);
  return s.slot.reduce((most, slot) => Math.max(most, slot + 1), 0);
}

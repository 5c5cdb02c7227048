/**
 * Replays a schedule with vocabulary passes under given costs: each rank runs its row in order, each entry as soon as
 * it may.
 */
import { type Seconds, TriremeError } from "@trireme/core";
import { kindCode } from "../action.ts";
import type { CostTable, ExecutionCosts } from "../execute.ts";
import { type ReplayCosts, executionCosts } from "../replay.ts";
import { type VocabularySchedule, entryCode, entryText } from "./vocabulary-schedule.ts";
import { type VocabularyExchanges, VocabularyState } from "./vocabulary-state.ts";

/** Costs of the schedule's actions, of the passes on one rank, and of the exchanges; what is left out takes no time. */
export interface VocabularyReplayCosts extends Pick<
  ReplayCosts,
  "forward" | "backward" | "inputGradient" | "weightGradient" | "pointToPoint"
> {
  readonly s: Seconds;
  readonly t: Seconds;
  readonly exchanges?: Partial<VocabularyExchanges>;
}

/** Times of one step. Columns run parallel to the entries of the rows. */
export interface VocabularyReplay {
  readonly makespan: Seconds;
  /** Per rank: time in actions and passes, and the rest. */
  readonly busy: Float64Array;
  readonly idle: Float64Array;
  /** Per rank: most activations held at once, in microbatches of one stage, from F to B or W. */
  readonly peak: Int32Array;
  /** Per rank: most microbatches between S and T at once. */
  readonly waiting: Int32Array;
  readonly starts: Float64Array;
  readonly ends: Float64Array;
}

/**
 * Replays it; linear in the entries but for ranks that wait.
 * @throws TriremeError `COST` for a cost that is missing, negative or not finite, `DEADLOCK` with the entry that
 * each rank stopped at.
 */
export function replayVocabulary(
  v: VocabularySchedule,
  costs: VocabularyReplayCosts,
): VocabularyReplay {
  const run = runRows(v, costs);
  const stopped = run.positions.findIndex((i, r) => i < v.offsets[r + 1]!);
  if (stopped >= 0) {
    const all = [...run.positions].flatMap((i, r) =>
      i < v.offsets[r + 1]! ? [`rank ${r} at ${entryText(v, i)}`] : [],
    );
    throw new TriremeError("DEADLOCK", `${v.schedule.name}: ${all.slice(0, 8).join(", ")} wait`);
  }
  return summary(v, run.starts, run.ends);
}

/** How far the rows ran, and when. */
export function runRows(
  v: VocabularySchedule,
  costs: VocabularyReplayCosts,
): {
  readonly starts: Float64Array;
  readonly ends: Float64Array;
  readonly positions: Int32Array;
} {
  const { schedule: s, offsets, kind, of } = v;
  const tables = executionCosts(s, costs);
  const [pass, exchanges] = checked(costs);
  const state = new VocabularyState(s, v.barriers, tables, exchanges);
  const starts = new Float64Array(kind.length);
  const ends = new Float64Array(kind.length);
  const positions = offsets.slice(0, s.ranks);
  const clock = new Float64Array(s.ranks);
  const advance = (r: number): boolean => {
    const from = positions[r]!;
    for (let i = from; i < offsets[r + 1]!; i++) {
      const name = kind[i] === entryCode.S ? "S" : "T";
      const own = kind[i] === entryCode.action;
      const ready = own ? state.action(of[i]!) : state.pass(name, of[i]!);
      if (ready !== ready) break;
      starts[i] = Math.max(clock[r]!, ready);
      ends[i] = starts[i]! + (own ? duration(tables, v, of[i]!) : pass[name]);
      clock[r] = ends[i]!;
      if (own) state.endAction(of[i]!, ends[i]!);
      else state.endPass(name, of[i]!, ends[i]!);
      positions[r] = i + 1;
    }
    return positions[r]! > from;
  };
  // Up the ranks what goes forward moves on, down again what goes backward.
  for (let moved = true; moved;) {
    moved = false;
    for (let r = 0; r < s.ranks; r++) if (advance(r)) moved = true;
    for (let r = s.ranks - 1; r >= 0; r--) if (advance(r)) moved = true;
  }
  return { starts, ends, positions };
}

function checked(
  costs: VocabularyReplayCosts,
): readonly [Readonly<Record<"S" | "T", Seconds>>, VocabularyExchanges] {
  const { output = 0, statistics = 0, gradient = 0 } = costs.exchanges ?? {};
  const all = { s: costs.s, t: costs.t, output, statistics, gradient };
  for (const [name, value] of Object.entries(all)) {
    if (value >= 0 && value < Infinity) continue;
    throw new TriremeError("COST", `${name} is ${value}; a cost is finite and at least 0`);
  }
  return [
    { S: costs.s, T: costs.t },
    { output, statistics, gradient },
  ];
}

function duration(c: ExecutionCosts, { schedule: s }: VocabularySchedule, i: number): Seconds {
  const tables: readonly CostTable[] = [c.forward, c.inputGradient, c.weightGradient, c.backward];
  const { values, perStage, perMicrobatch } = tables[s.kind[i]!]!;
  return values[s.stage[i]! * perStage + s.microbatch[i]! * perMicrobatch]!;
}

function summary(
  v: VocabularySchedule,
  starts: Float64Array,
  ends: Float64Array,
): VocabularyReplay {
  const { schedule: s, offsets, kind, of } = v;
  const busy = new Float64Array(s.ranks);
  const peak = new Int32Array(s.ranks);
  const waiting = new Int32Array(s.ranks);
  let makespan = 0;
  for (let r = 0; r < s.ranks; r++) {
    let [held, between] = [0, 0];
    for (let i = offsets[r]!; i < offsets[r + 1]!; i++) {
      busy[r]! += ends[i]! - starts[i]!;
      makespan = Math.max(makespan, ends[i]!);
      if (kind[i] === entryCode.action) {
        const action = s.kind[of[i]!]!;
        if (action === kindCode.F) held++;
        else if (action !== kindCode.I) held--;
      } else {
        between += kind[i] === entryCode.S ? 1 : -1;
      }
      peak[r] = Math.max(peak[r]!, held);
      waiting[r] = Math.max(waiting[r]!, between);
    }
  }
  return { makespan, busy, idle: busy.map((b) => makespan - b), peak, waiting, starts, ends };
}

/**
 * Passes on the weights of whole stages, for data parallelism with sharded weights: UNSHARD gathers
 * a stage's weights before use, RESHARD drops them, REDUCE_GRAD reduces its gradients after its last
 * backward (as torch's lowering does). MegaScale (Jiang et al., NSDI 2024, §3.2) runs these per
 * chunk beside the computation, most urgent first.
 */
import { TriremeError } from "@trireme/core";
import { kindCode } from "./action.ts";
import { ScheduleBuilder } from "./schedule-builder.ts";
import type { Schedule } from "./schedule.ts";

/**
 * Adds UNSHARD and RESHARD so that each rank holds the weights of the next stages that it computes
 * on, at most `maxUnsharded` (torch's default is 3) at a time, each gathered as early as that allows.
 * @throws TriremeError `LOWERED` when the schedule already has them, `SCHEDULE` for a limit too small.
 */
export function addUnshardReshard(
  s: Schedule,
  o: { readonly maxUnsharded?: number } = {},
): Schedule {
  const most = o.maxUnsharded ?? 3;
  if (!Number.isInteger(most) || most < 1) {
    throw new TriremeError("SCHEDULE", `maxUnsharded = ${most} is not an integer of 1 or more`);
  }
  if (s.kind.includes(kindCode.UNSHARD)) {
    throw new TriremeError("LOWERED", `${s.name} already gathers weights; add that once`);
  }
  const { slot: _, ...shape } = s;
  const builder = new ScheduleBuilder(shape, s.kind.length + 4 * s.stages);
  for (let r = 0; r < s.ranks; r++) {
    const [from, to] = [s.offsets[r]!, s.offsets[r + 1]!];
    const window = Math.min(most, s.chunks);
    if (window < 2 && s.overlap.includes(1)) throw tooFew(s);
    const upcoming = nextStages(s, from, to, window);
    const active = new Set<number>();
    for (let i = from; i < to; i++) {
      // Both halves of an overlapped pair find their weights when the pair starts.
      if (s.kind[i]! <= kindCode.B && s.overlap[i] !== 2) {
        const next = upcoming.subarray((i - from) * window, (i - from + 1) * window);
        for (const st of active) {
          if (next.includes(st)) continue;
          builder.add(kindCode.RESHARD, st, -1);
          active.delete(st);
        }
        for (const st of next) {
          if (st < 0 || active.has(st)) continue;
          builder.add(kindCode.UNSHARD, st, -1);
          active.add(st);
        }
      }
      builder.add(s.kind[i]!, s.stage[i]!, s.microbatch[i]!, s.overlap[i]);
    }
    for (const st of active) builder.add(kindCode.RESHARD, st, -1);
    builder.endRow();
  }
  return builder.finish();
}

function tooFew(s: Schedule): TriremeError {
  return new TriremeError(
    "SCHEDULE",
    `maxUnsharded = 1, but ${s.name} runs actions of two stages together; use 2`,
  );
}

/** For each action of a row the first `window` different stages from there on; −1: no more. */
function nextStages(s: Schedule, from: number, to: number, window: number): Int32Array {
  const out = new Int32Array((to - from) * window).fill(-1);
  // Kept in order of next use, seen from action i: the stage of action i moves to the front.
  const recent: number[] = [];
  for (let i = to - 1; i >= from; i--) {
    if (s.kind[i]! <= kindCode.B) {
      const st = s.stage[i]!;
      const at = recent.indexOf(st);
      if (at !== 0) {
        if (at > 0) recent.splice(at, 1);
        recent.unshift(st);
      }
    }
    for (let k = 0; k < Math.min(window, recent.length); k++)
      out[(i - from) * window + k] = recent[k]!;
  }
  return out;
}

/**
 * Adds REDUCE_GRAD right after the last backward (B or W) of each stage.
 * @throws TriremeError `LOWERED` when the schedule already has it: twice would scale the gradients.
 */
export function addReduceGrad(s: Schedule): Schedule {
  if (s.kind.includes(kindCode.REDUCE_GRAD)) {
    throw new TriremeError("LOWERED", `${s.name} already reduces gradients; add that once`);
  }
  const last = new Int32Array(s.stages).fill(-1);
  for (let i = 0; i < s.kind.length; i++) {
    if (s.kind[i] === kindCode.B || s.kind[i] === kindCode.W) last[s.stage[i]!] = i;
  }
  const { slot: _, ...shape } = s;
  const builder = new ScheduleBuilder(shape, s.kind.length + s.stages);
  for (let r = 0; r < s.ranks; r++) {
    for (let i = s.offsets[r]!; i < s.offsets[r + 1]!; i++) {
      builder.add(s.kind[i]!, s.stage[i]!, s.microbatch[i]!, s.overlap[i]);
      if (last[s.stage[i]!] === i) builder.add(kindCode.REDUCE_GRAD, s.stage[i]!, -1);
    }
    builder.endRow();
  }
  return builder.finish();
}

/**
 * How urgent each UNSHARD and REDUCE_GRAD is among those of its rank; a smaller number goes first,
 * −1 stands for all other actions. An UNSHARD is as urgent as the place of the first action that
 * needs the weights; a REDUCE_GRAD, which nothing in the step waits for, comes after all of them.
 */
export function weightPriorities(s: Schedule): Int32Array {
  const out = new Int32Array(s.kind.length).fill(-1);
  const nextUse = new Int32Array(s.stages);
  for (let r = 0; r < s.ranks; r++) {
    const [from, to] = [s.offsets[r]!, s.offsets[r + 1]!];
    nextUse.fill(to - from);
    for (let i = to - 1; i >= from; i--) {
      const k = s.kind[i]!;
      if (k <= kindCode.B) nextUse[s.stage[i]!] = i - from;
      else if (k === kindCode.UNSHARD) out[i] = nextUse[s.stage[i]!]!;
      else if (k === kindCode.REDUCE_GRAD) out[i] = to - from + (i - from);
    }
  }
  return out;
}

/** Whether a schedule with vocabulary passes computes what it should. */
import { type Validation, type Violation, validate } from "../validate.ts";
import { runRows } from "./replay-vocabulary.ts";
import { type VocabularySchedule, entryCode, entryText } from "./vocabulary-schedule.ts";

/**
 * Checks the schedule by its own rules, and the rows: every action of a rank once in its order, S and T of every
 * microbatch once on every rank, S in order and before its T, and that all of it runs to the end under the barriers.
 */
export function validateVocabulary(v: VocabularySchedule): Validation {
  const own = validate(v.schedule);
  if (!own.ok) return own;
  const violations: Violation[] = [];
  const report = (rule: Violation["rule"], rank: number, message: string): void => {
    if (violations.length < 100) violations.push({ rule, rank, message });
  };
  for (let r = 0; r < v.schedule.ranks; r++) checkRow(v, r, report);
  if (violations.length === 0) checkProgress(v, report);
  return violations.length === 0 ? { ok: true } : { ok: false, violations };
}

type Report = (rule: Violation["rule"], rank: number, message: string) => void;

function checkRow(v: VocabularySchedule, r: number, report: Report): void {
  const { microbatches: M, offsets } = v.schedule;
  let next = offsets[r]!;
  // Bits of each microbatch: S seen, T seen.
  const seen = new Uint8Array(M);
  let lastS = -1;
  for (let i = v.offsets[r]!; i < v.offsets[r + 1]!; i++) {
    const [kind, of] = [v.kind[i]!, v.of[i]!];
    if (kind === entryCode.action) {
      if (of !== next++) {
        report("sequence", r, `${entryText(v, i)} on rank ${r} is not the schedule's next action`);
      }
      continue;
    }
    if (of < 0 || of >= M) {
      report("count", r, `${entryText(v, i)} on rank ${r}: microbatches are 0..${M - 1}`);
      continue;
    }
    if ((seen[of]! & kind) !== 0) report("count", r, `${entryText(v, i)} on rank ${r} runs twice`);
    if (kind === entryCode.T && (seen[of]! & entryCode.S) === 0) {
      report("sequence", r, `T${of} on rank ${r} before S${of}`);
    }
    if (kind === entryCode.S) {
      if (of < lastS) report("sequence", r, `S${of} on rank ${r} after S${lastS}; S goes in order`);
      lastS = of;
    }
    seen[of]! |= kind;
  }
  if (next !== offsets[r + 1]!) {
    report("count", r, `rank ${r} has ${offsets[r + 1]! - next} actions less than the schedule`);
  }
  for (const [m, bits] of seen.entries()) {
    for (const name of ["S", "T"] as const) {
      if ((bits & entryCode[name]) === 0) report("count", r, `${name}${m} is missing on rank ${r}`);
    }
  }
}

function checkProgress(v: VocabularySchedule, report: Report): void {
  const unit = { forward: 1, inputGradient: 1, weightGradient: 1, s: 1, t: 1 };
  const { positions } = runRows(v, unit);
  const stopped = positions.findIndex((i, r) => i < v.offsets[r + 1]!);
  if (stopped < 0) return;
  const what = entryText(v, positions[stopped]!);
  report("deadlock", stopped, `rank ${stopped} waits at ${what} for what never runs`);
}

/**
 * Whether a schedule computes what it should: the rules of torch.distributed.pipelining's checker
 * and of its simulator, plus a search for deadlocks. All rules that fail are reported, each with
 * the actions at fault; the deadlock search runs only when the others hold.
 */
import { type Action, kindCode, printAction } from "./action.ts";
import { findDeadlock } from "./deadlock.ts";
import { execute, unitCosts } from "./execute.ts";
import { checkMessages, checkReductions, checkWeights } from "./messages.ts";
import { rendezvousPositions } from "./rendezvous.ts";
import { type Schedule, actionAt, stagesPerDirection } from "./schedule.ts";

/**
 * rows: one row per rank. placement: every stage on its own rank only. forward-first: F before B or
 * I. weight-after-input: W after I. count: each microbatch once. sequence: forwards of a stage in
 * order, time slots in order of dependency, messages matched and received before use, gradients
 * reduced once and after the last backward of their stage.
 * deadlock: the schedule runs to its end.
 */
export type Rule =
  | "rows"
  | "placement"
  | "forward-first"
  | "weight-after-input"
  | "count"
  | "sequence"
  | "deadlock";

export interface Violation {
  readonly rule: Rule;
  readonly message: string;
  readonly rank: number;
}

export type Validation =
  | { readonly ok: true }
  | { readonly ok: false; readonly violations: readonly Violation[] };

/** Violations beyond this are not listed. */
const mostViolations = 100;

export interface ValidateOptions {
  /**
   * `buffered` (when left out): a send never waits. `rendezvous`: a send waits for its receive, and
   * the search for deadlocks takes that into account.
   */
  readonly sends?: "buffered" | "rendezvous";
}

/** Checks the seven rules; linear in the number of actions. */
export function validate(s: Schedule, o: ValidateOptions = {}): Validation {
  const violations: Violation[] = [];
  const report = (rule: Rule, rank: number, message: string): void => {
    if (violations.length < mostViolations) violations.push({ rule, message, rank });
  };
  if (!checkRows(s, report)) return { ok: false, violations };
  checkActions(s, report);
  if (violations.length === 0)
    checkMessages(s, (rank, message) => report("sequence", rank, message));
  if (violations.length === 0)
    checkWeights(s, (rank, message) => report("sequence", rank, message));
  if (violations.length === 0)
    checkReductions(s, (rank, message) => report("sequence", rank, message));
  if (violations.length === 0) checkSlots(s, report);
  if (violations.length === 0) checkProgress(s, report);
  if (violations.length === 0 && o.sends === "rendezvous") checkRendezvous(s, report);
  return violations.length === 0 ? { ok: true } : { ok: false, violations };
}

type Report = (rule: Rule, rank: number, message: string) => void;

function checkRows(s: Schedule, report: Report): boolean {
  const rows = s.offsets.length - 1;
  if (rows !== s.ranks) {
    report("rows", Math.min(rows, s.ranks), `${rows} rows for ${s.ranks} ranks; one row per rank`);
    return false;
  }
  if (s.stageRank.length !== s.stages) {
    report(
      "placement",
      0,
      `${s.stageRank.length} of ${s.stages} stages have a rank; each needs one`,
    );
    return false;
  }
  return true;
}

const forwardSeen = 1;
const gradientSeen = 2;
const fullSeen = 4;
const weightSeen = 8;

/** Placement, order and count, in one pass over the columns. */
function checkActions(s: Schedule, report: Report): void {
  const { microbatches: M, stages, kind, stage, microbatch, overlap } = s;
  const seen = new Uint8Array(stages * M);
  const lastForward = new Int32Array(stages).fill(-1);
  const share = M / s.directions;
  const chain = stagesPerDirection(s);
  const name = (i: number): string => printAction(actionAt(s, i));
  for (let r = 0; r < s.ranks; r++) {
    for (let i = s.offsets[r]!; i < s.offsets[r + 1]!; i++) {
      const [k, st, m] = [kind[i]!, stage[i]!, microbatch[i]!];
      if (st < 0 || st >= stages) {
        report("placement", r, `${name(i)} on rank ${r}: the stages are 0..${stages - 1}`);
        continue;
      }
      if (s.stageRank[st] !== r) {
        report(
          "placement",
          r,
          `${name(i)} on rank ${r}, but stage ${st} is on rank ${s.stageRank[st]}`,
        );
        continue;
      }
      const paired =
        k === kindCode.F &&
        i + 1 < s.offsets[r + 1]! &&
        overlap[i + 1] === 2 &&
        kind[i + 1] === kindCode.B;
      if (overlap[i] === 1 && !paired) {
        report(
          "sequence",
          r,
          `${name(i)} on rank ${r} is marked as overlapped, but no B follows it`,
        );
      }
      if (overlap[i] === 2 && (i === s.offsets[r]! || overlap[i - 1] !== 1)) {
        report(
          "sequence",
          r,
          `${name(i)} on rank ${r} is marked as the second half of a pair, but no F before it is the first`,
        );
      }
      if (m < 0) {
        const ofStage = k >= kindCode.UNSHARD && k <= kindCode.REDUCE_GRAD;
        if (!ofStage) report("count", r, `${name(i)} on rank ${r} has no microbatch`);
        continue;
      }
      const low = Math.floor(st / chain) * share;
      if (m < low || m >= low + share) {
        report(
          "count",
          r,
          `${name(i)} on rank ${r}: microbatches of stage ${st} are ${low}..${low + share - 1}`,
        );
        continue;
      }
      if (k > kindCode.B) continue;
      const key = st * M + m;
      const before = seen[key]!;
      let bit = forwardSeen;
      switch (k) {
        case kindCode.F:
          if (m < lastForward[st]!) {
            report(
              "sequence",
              r,
              `${name(i)} on rank ${r} after ${st}F${lastForward[st]}; forwards of a stage go in order`,
            );
          }
          lastForward[st] = m;
          break;
        case kindCode.W:
          bit = weightSeen;
          if ((before & gradientSeen) === 0) {
            report("weight-after-input", r, `${name(i)} on rank ${r} before ${st}I${m}`);
          }
          break;
        default:
          bit = k === kindCode.B ? fullSeen : gradientSeen;
          if ((before & forwardSeen) === 0) {
            report("forward-first", r, `${name(i)} on rank ${r} before ${st}F${m}`);
          }
      }
      if ((before & bit) !== 0) report("count", r, `${name(i)} on rank ${r} runs twice`);
      seen[key] = before | bit;
    }
  }
  for (let st = 0; st < stages; st++) {
    const low = Math.floor(st / chain) * share;
    for (let m = low; m < low + share; m++) {
      const bits = seen[st * M + m]!;
      if (bits === (s.forwardOnly ? forwardSeen : forwardSeen | fullSeen)) continue;
      if (bits === (forwardSeen | gradientSeen | weightSeen) && !s.forwardOnly) continue;
      report("count", s.stageRank[st]!, countMessage(s, st, m, bits));
    }
  }
}

function countMessage(s: Schedule, stage: number, microbatch: number, bits: number): string {
  const text = (kind: Action["kind"]): string => printAction({ stage, kind, microbatch });
  const where = `on rank ${s.stageRank[stage]}`;
  if ((bits & forwardSeen) === 0) return `${text("F")} is missing ${where}`;
  if (s.forwardOnly)
    return `stage ${stage} has a backward of microbatch ${microbatch} ${where}, but the schedule is forward only`;
  if ((bits & fullSeen) !== 0)
    return `${text("B")} ${where} beside ${text((bits & gradientSeen) !== 0 ? "I" : "W")}; a backward is B, or I and W`;
  if ((bits & gradientSeen) === 0)
    return `${text("B")}, or ${text("I")} and ${text("W")}, is missing ${where}`;
  return `${text("W")} is missing ${where}; every I needs its W`;
}

/** On a grid every action stands in a later slot than its input. */
function checkSlots(s: Schedule, report: Report): void {
  const { slot, kind, stage, microbatch, microbatches: M } = s;
  if (slot === undefined) return;
  const chain = stagesPerDirection(s);
  // Place + 1 of each F (even) and B or I (odd).
  const places = new Int32Array(2 * s.stages * M);
  const halfOf = (k: number): number =>
    k === kindCode.F ? 0 : k === kindCode.B || k === kindCode.I ? 1 : -1;
  for (let i = 0; i < kind.length; i++) {
    const half = halfOf(kind[i]!);
    if (half >= 0) places[2 * (stage[i]! * M + microbatch[i]!) + half] = i + 1;
  }
  for (let r = 0; r < s.ranks; r++) {
    for (let i = s.offsets[r]!; i < s.offsets[r + 1]!; i++) {
      const half = halfOf(kind[i]!);
      const from = stage[i]! + (half === 0 ? -1 : 1);
      if (half < 0 || from < 0 || Math.floor(from / chain) !== Math.floor(stage[i]! / chain))
        continue;
      const input = places[2 * (from * M + microbatch[i]!) + half]! - 1;
      if (input < 0 || slot[input]! < slot[i]!) continue;
      report(
        "sequence",
        r,
        `${printAction(actionAt(s, i))} on rank ${r} in slot ${slot[i]}, but ${printAction(actionAt(s, input))} is in slot ${slot[input]}`,
      );
    }
  }
}

/** No deadlock where sends do not wait. */
function checkProgress(s: Schedule, report: Report): void {
  const run = execute(s, unitCosts(s));
  if (run.complete) return;
  const deadlock = findDeadlock(s, run.positions);
  if (deadlock !== undefined) report("deadlock", deadlock.rank, deadlock.message);
}

/** No deadlock where sends wait for their receives. */
function checkRendezvous(s: Schedule, report: Report): void {
  const positions = rendezvousPositions(s);
  const stopped: string[] = [];
  for (let r = 0; r < s.ranks; r++) {
    if (positions[r]! < s.offsets[r + 1]!) {
      stopped.push(`${printAction(actionAt(s, positions[r]!))} on rank ${r}`);
    }
  }
  if (stopped.length === 0) return;
  const list = stopped.slice(0, 8).join(", ") + (stopped.length > 8 ? ", …" : "");
  report(
    "deadlock",
    positions.findIndex((at, r) => at < s.offsets[r + 1]!),
    `deadlock: without buffers these wait for each other: ${list}`,
  );
}

/**
 * Encoder work in a language-model pipeline (multimodal training; MegaScale-Omni, EuroSys 2026,
 * EncoderAnchor). Encoders are held by all ranks, so the work of a microbatch's images or sound can
 * run anywhere, in pieces: before the microbatch enters the first stage (forward) and after its
 * gradient has left it (backward). The schedule of the language model stays as it is; pieces are
 * anchored before its actions where a rank would stand idle, and only where the first stage waits for
 * its input does the encoder hold it up. So encoder work fills bubbles first, and what is left over
 * spreads over all ranks alike.
 */
import { EventQueue, type Seconds, TriremeError } from "@trireme/core";
import { kindCode } from "./action.ts";
import { type EncoderWork, type PieceTimes, checkedWork } from "./encoder-work.ts";
import { type CostTable, type ExecutionCosts, execute } from "./execute.ts";
import { isLowered } from "./messages.ts";
import { type ReplayCosts, executionCosts } from "./replay.ts";
import { type Schedule, stagesPerDirection } from "./schedule.ts";

/** A schedule with anchored encoder work. Piece columns have one entry for each piece, by start. */
export interface AnchoredSchedule {
  readonly schedule: Schedule;
  readonly pieces: {
    readonly rank: Int32Array;
    /** The action of the schedule before which the piece runs; its row's end: after all. */
    readonly anchor: Int32Array;
    readonly microbatch: Int32Array;
    /** 1 for a piece of the backward. */
    readonly backward: Uint8Array;
    readonly starts: Float64Array;
    readonly ends: Float64Array;
  };
  /** Times of the schedule's own actions. */
  readonly starts: Float64Array;
  readonly ends: Float64Array;
  readonly makespan: Seconds;
  /** Per rank: time in neither the schedule's actions nor pieces. */
  readonly idle: Float64Array;
  /** The makespan of the schedule alone. */
  readonly languageMakespan: Seconds;
}

/**
 * Anchors encoder work in a compute-only schedule. Tries two rules, taking a piece whenever a rank is
 * idle, and only where it fits the idle time that the schedule alone has there, and keeps the faster.
 * @throws TriremeError `LOWERED` for a schedule with sends, `COST` for costs out of range, `DEADLOCK`.
 */
export function anchorEncoder(
  s: Schedule,
  costs: ReplayCosts,
  work: EncoderWork,
): AnchoredSchedule {
  if (isLowered(s)) {
    throw new TriremeError("LOWERED", `${s.name} has sends; anchor the encoder first, then lower`);
  }
  const tables = executionCosts(s, costs);
  const alone = execute(s, tables);
  const languageMakespan = alone.ends.reduce((a, b) => Math.max(a, b), 0);
  const pieceTimes = checkedWork(s, work);
  const runs = [0, Infinity].map((slack) =>
    run(s, tables, alone.starts, alone.ends, pieceTimes, slack),
  );
  const best = runs.reduce((a, b) => (b.makespan < a.makespan ? b : a));
  return { ...best, schedule: s, languageMakespan };
}

/** @param slack How much longer than the idle time seen in the schedule alone a piece may be. */
function run(
  s: Schedule,
  costs: ExecutionCosts,
  aloneStarts: Float64Array,
  aloneEnds: Float64Array,
  work: PieceTimes,
  slack: number,
): Omit<AnchoredSchedule, "schedule" | "languageMakespan"> {
  const {
    ranks,
    microbatches: M,
    stages,
    stageRank,
    offsets,
    kind,
    stage,
    microbatch,
    overlap,
  } = s;
  const chain = stagesPerDirection(s);
  const starts = new Float64Array(kind.length);
  const ends = new Float64Array(kind.length);
  // When the input of F (even) and of B or I (odd) arrives; NaN: not yet.
  const arrival = new Float64Array(2 * stages * M).fill(NaN);
  const entry = (m: number): number => (s.directions === 2 && m >= M / 2 ? chain : 0);
  for (let m = 0; m < M; m++) arrival[2 * ((entry(m) + chain - 1) * M + m) + 1] = 0;
  const positions = offsets.slice(0, ranks);
  const free = new Float64Array(ranks);
  const busy = new Float64Array(ranks);
  const queue = new EventQueue(4 * ranks);
  const order = encodingOrder(s);
  // Pieces of the forward that are taken, over all microbatches in order; those ended, by microbatch.
  let taken = 0;
  let entered = 0;
  const encodedBy = new Float64Array(M);
  // Microbatches whose backward pieces may run, and from when; pieces taken of the first of them.
  const returned: { readonly m: number; readonly at: Seconds }[] = [];
  let returnedAt = 0;
  let returnedTaken = 0;
  const out = {
    rank: [] as number[],
    anchor: [] as number[],
    microbatch: [] as number[],
    backward: [] as number[],
    starts: [] as number[],
    ends: [] as number[],
  };
  const wakeAll = (time: Seconds): void => {
    for (let r = 0; r < ranks; r++) queue.push(Math.max(time, queue.now), r);
  };
  const deliver = (place: number, time: Seconds, to: number): void => {
    arrival[place] = time;
    queue.push(Math.max(time, queue.now), to);
  };
  const isReady = (i: number, now: Seconds): boolean => {
    const key = 2 * (stage[i]! * M + microbatch[i]!);
    const k = kind[i]!;
    if (k === kindCode.F) return arrival[key]! <= now;
    return (k !== kindCode.B && k !== kindCode.I) || arrival[key + 1]! <= now;
  };
  /** Runs action i (and the other half of a pair) on rank r from `now` on. */
  const runAction = (r: number, i: number, now: Seconds): void => {
    const count = overlap[i] === 1 ? 2 : 1;
    let time = 0;
    for (let j = i; j < i + count; j++)
      time += actionTime(costs, kind[j]!, stage[j]!, microbatch[j]!);
    if (count === 2 && costs.overlapped !== undefined)
      time = costs.overlapped(stage[i]!, stage[i + 1]!);
    const end = now + time;
    for (let j = i; j < i + count; j++) {
      [starts[j], ends[j]] = [now, end];
      const [k, st, m] = [kind[j]!, stage[j]!, microbatch[j]!];
      if (k === kindCode.F) {
        if (st % chain === 0) {
          entered++;
          // Room for the encoder to run ahead again.
          if (work.ahead < M) wakeAll(now);
        }
        if (st % chain < chain - 1)
          deliver(2 * ((st + 1) * M + m), end + costs.up[st]!, stageRank[st + 1]!);
      } else if (k === kindCode.B || k === kindCode.I) {
        if (st % chain > 0) {
          deliver(2 * ((st - 1) * M + m) + 1, end + costs.down[st]!, stageRank[st - 1]!);
        } else if (work.backward[m]! > 0) {
          returned.push({ m, at: end + work.transfer });
          wakeAll(end + work.transfer);
        }
      }
    }
    positions[r] = i + count;
    busy[r]! += time;
    free[r] = end;
    queue.push(end, r);
  };
  const runPiece = (r: number, m: number, backward: 0 | 1, now: Seconds): void => {
    const time = (backward === 1 ? work.backward : work.forward)[m]!;
    out.rank.push(r);
    out.anchor.push(positions[r]!);
    out.microbatch.push(m);
    out.backward.push(backward);
    out.starts.push(now);
    out.ends.push(now + time);
    busy[r]! += time;
    free[r] = now + time;
    queue.push(now + time, r);
  };
  /** Gives rank r an encoder piece, if there is one that it should take. */
  const takePiece = (r: number, now: Seconds): boolean => {
    const i = positions[r]!;
    const over = i >= offsets[r + 1]!;
    const gap = over ? Infinity : aloneStarts[i]! - (i > offsets[r]! ? aloneEnds[i - 1]! : 0);
    const next = Math.floor(taken / work.pieces);
    if (next < M && next < entered + work.ahead) {
      const m = order[next]!;
      // The next microbatch that the first stage needs is urgent: everybody helps.
      const urgent = next <= entered;
      if (urgent || over || work.forward[m]! <= gap + slack) {
        runPiece(r, m, 0, now);
        encodedBy[m] = Math.max(encodedBy[m]!, now + work.forward[m]!);
        if (++taken % work.pieces === 0) {
          const place = entry(m);
          deliver(2 * (place * M + m), encodedBy[m] + work.transfer, stageRank[place]!);
        }
        return true;
      }
    }
    const back = returned[returnedAt];
    if (back !== undefined && back.at <= now && (over || work.backward[back.m]! <= gap + slack)) {
      runPiece(r, back.m, 1, now);
      if (++returnedTaken === work.pieces) {
        returnedTaken = 0;
        returnedAt++;
      }
      return true;
    }
    return false;
  };
  wakeAll(0);
  while (queue.size > 0) {
    const r = queue.pop();
    const { now } = queue;
    if (free[r]! > now) continue;
    const i = positions[r]!;
    const pair = overlap[i] === 1;
    if (i < offsets[r + 1]! && isReady(i, now) && (!pair || isReady(i + 1, now)))
      runAction(r, i, now);
    else if (!takePiece(r, now)) continue;
  }
  if (positions.some((at, r) => at < offsets[r + 1]!)) {
    throw new TriremeError("DEADLOCK", `${s.name} stops before its end; validate says why`);
  }
  const makespan = free.reduce((a, b) => Math.max(a, b), 0);
  return {
    pieces: {
      rank: Int32Array.from(out.rank),
      anchor: Int32Array.from(out.anchor),
      microbatch: Int32Array.from(out.microbatch),
      backward: Uint8Array.from(out.backward),
      starts: Float64Array.from(out.starts),
      ends: Float64Array.from(out.ends),
    },
    starts,
    ends,
    makespan,
    idle: busy.map((time) => Math.max(0, makespan - time)),
  };
}

function actionTime(
  costs: ExecutionCosts,
  kind: number,
  stage: number,
  microbatch: number,
): Seconds {
  const tables: readonly CostTable[] = [
    costs.forward,
    costs.inputGradient,
    costs.weightGradient,
    costs.backward,
  ];
  const t = tables[kind];
  return t === undefined ? 0 : t.values[stage * t.perStage + microbatch * t.perMicrobatch]!;
}

/** Microbatches in the order in which first stages take them; two directions take turns. */
function encodingOrder(s: Schedule): Int32Array {
  const M = s.microbatches;
  if (s.directions === 1) return Int32Array.from({ length: M }, (_, k) => k);
  return Int32Array.from({ length: M }, (_, k) => (k % 2) * (M / 2) + (k >> 1));
}

/**
 * Runs the actions of a schedule in order of their dependencies, one pass over the columns: what
 * `replay` takes its times from and what `validate` searches for deadlocks. A rank works through
 * its row until an input is missing, and is woken by the action that provides it; every action is
 * visited once, and a wait costs one more visit, so the time is linear.
 *
 * F(s,m) needs the output of F(s−1,m); B or I(s,m) needs F(s,m) and the gradient from B or I(s+1,m);
 * W(s,m) needs I(s,m). Between ranks the input comes straight from the producing action, or from
 * its SEND where the schedule holds sends.
 */
import type { Seconds } from "@trireme/core";
import { kindCode } from "./action.ts";
import { type Schedule, stagesPerDirection } from "./schedule.ts";
import { weightPriorities } from "./weight-actions.ts";
import { WeightLane } from "./weight-lane.ts";

/** Seconds of (stage s, microbatch m) at `values[s · perStage + m · perMicrobatch]`. */
export interface CostTable {
  readonly values: Float64Array;
  readonly perStage: number;
  readonly perMicrobatch: number;
}

/** What `execute` needs to know about time. */
export interface ExecutionCosts {
  readonly forward: CostTable;
  readonly backward: CostTable;
  readonly inputGradient: CostTable;
  readonly weightGradient: CostTable;
  /** Time of an overlapped pair from the stages of its F and B; undefined: the sum of the two. */
  readonly overlapped: ((forwardStage: number, backwardStage: number) => Seconds) | undefined;
  /** Transfer of activations from stage s to s+1; 0 where they share a rank. */
  readonly up: Float64Array;
  /** Transfer of gradients from stage s to s−1. */
  readonly down: Float64Array;
  /** For each action, 1 where a send or receive holds up the rank until it is over. */
  readonly blocking: Uint8Array | undefined;
  /** Per stage: gathering its weights and reducing its gradients. */
  readonly unshard: Float64Array;
  readonly reduceGradient: Float64Array;
}

/** How far the schedule ran, and when. */
export interface Execution {
  readonly starts: Float64Array;
  readonly ends: Float64Array;
  /** The first action of each rank that did not run; the row's end when all did. */
  readonly positions: Int32Array;
  /** False in a deadlock. */
  readonly complete: boolean;
}

const forwardDone = 1;
const gradientDone = 2;

export function execute(s: Schedule, costs: ExecutionCosts): Execution {
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
  const positions = offsets.slice(0, ranks);
  // When the input of F (even) and of B or I (odd) of (stage, microbatch) arrives; NaN: not yet.
  const arrival = new Float64Array(2 * stages * M).fill(NaN);
  const state = new Uint8Array(stages * M);
  for (let st = 0; st < stages; st++) {
    if (st % chain === 0) for (let m = 0; m < M; m++) arrival[2 * (st * M + m)] = 0;
    if (st % chain === chain - 1) for (let m = 0; m < M; m++) arrival[2 * (st * M + m) + 1] = 0;
  }
  const sends = kind.includes(kindCode.SEND_F) || kind.includes(kindCode.SEND_B);
  const lanes = weightLanes(s, costs, starts, ends);
  // The UNSHARD that each stage waits for; −1: none.
  const gather = new Int32Array(lanes === undefined ? 0 : stages).fill(-1);
  const clock = new Float64Array(ranks);
  // What each stopped rank waits for, as a place in `arrival`; −1: it runs or is over.
  const waits = new Int32Array(ranks).fill(-1);
  const ready: number[] = [];
  for (let r = ranks - 1; r >= 0; r--) ready.push(r);

  const deliver = (place: number, time: number, to: number): void => {
    arrival[place] = time;
    if (waits[to] === place) {
      waits[to] = -1;
      ready.push(to);
    }
  };
  /** Tells the neighbour stage that an F, or a B or I, of this stage ended (or was sent). */
  const finishForward = (
    st: number,
    m: number,
    time: number,
    rank: number,
    send: boolean,
  ): void => {
    if (st % chain === chain - 1) return;
    const to = stageRank[st + 1]!;
    if (sends && !send && to !== rank) return;
    deliver(2 * ((st + 1) * M + m), time + costs.up[st]!, to);
  };
  const finishBackward = (
    st: number,
    m: number,
    time: number,
    rank: number,
    send: boolean,
  ): void => {
    if (st % chain === 0) return;
    const to = stageRank[st - 1]!;
    if (sends && !send && to !== rank) return;
    deliver(2 * ((st - 1) * M + m) + 1, time + costs.down[st]!, to);
  };

  for (let r = ready.pop(); r !== undefined; r = ready.pop()) {
    const end = offsets[r + 1]!;
    let i = positions[r]!;
    let now = clock[r]!;
    run: for (; i < end; i++) {
      const st = stage[i]!;
      const m = microbatch[i]!;
      const key = st * M + m;
      let finish = now;
      if (lanes !== undefined && kind[i]! <= kindCode.B) {
        for (let j = i; j <= i + (overlap[i] === 1 ? 1 : 0); j++) {
          const wanted = gather[stage[j]!]!;
          if (wanted >= 0) now = Math.max(now, lanes[r]!.finish(wanted));
        }
      }
      switch (kind[i]!) {
        case kindCode.F: {
          const input = arrival[2 * key]!;
          if (!(input <= now)) {
            if (input !== input) {
              waits[r] = 2 * key;
              break run;
            }
            now = input;
          }
          if (overlap[i] === 1) {
            // The pair starts when both inputs are there and takes its own time.
            const st2 = stage[i + 1]!;
            const key2 = st2 * M + microbatch[i + 1]!;
            const input2 = arrival[2 * key2 + 1]!;
            if (input2 !== input2) {
              waits[r] = 2 * key2 + 1;
              break run;
            }
            if ((state[key2]! & forwardDone) === 0) break run;
            if (input2 > now) now = input2;
            finish =
              now +
              (costs.overlapped === undefined
                ? at(costs.forward, st, m) + at(costs.backward, st2, microbatch[i + 1]!)
                : costs.overlapped(st, st2));
            starts[i + 1] = now;
            ends[i + 1] = finish;
          } else {
            finish = now + at(costs.forward, st, m);
          }
          state[key]! |= forwardDone;
          starts[i] = now;
          ends[i] = finish;
          finishForward(st, m, finish, r, false);
          if (overlap[i] === 1) {
            i++;
            const st2 = stage[i]!;
            state[st2 * M + microbatch[i]!]! |= gradientDone;
            finishBackward(st2, microbatch[i]!, finish, r, false);
          }
          now = finish;
          continue;
        }
        case kindCode.B:
        case kindCode.I: {
          const input = arrival[2 * key + 1]!;
          if (!(input <= now)) {
            if (input !== input) {
              waits[r] = 2 * key + 1;
              break run;
            }
            now = input;
          }
          if ((state[key]! & forwardDone) === 0) break run;
          finish = now + at(kind[i] === kindCode.B ? costs.backward : costs.inputGradient, st, m);
          state[key]! |= gradientDone;
          finishBackward(st, m, finish, r, false);
          break;
        }
        case kindCode.W:
          if ((state[key]! & gradientDone) === 0) break run;
          finish = now + at(costs.weightGradient, st, m);
          break;
        case kindCode.SEND_F:
          if ((state[key]! & forwardDone) === 0) break run;
          finish = now + costs.up[st]!;
          finishForward(st, m, now, r, true);
          break;
        case kindCode.SEND_B:
          if ((state[key]! & gradientDone) === 0) break run;
          finish = now + costs.down[st]!;
          finishBackward(st, m, now, r, true);
          break;
        case kindCode.RECV_F:
        case kindCode.RECV_B: {
          // A receive is posted and waited for by its user, unless it blocks.
          const input = arrival[2 * key + (kind[i] === kindCode.RECV_F ? 0 : 1)]!;
          if (costs.blocking !== undefined && costs.blocking[i] === 1) {
            if (input !== input) {
              waits[r] = 2 * key + (kind[i] === kindCode.RECV_F ? 0 : 1);
              break run;
            }
            finish = Math.max(now, input);
          }
          break;
        }
        case kindCode.UNSHARD:
          gather[st] = i;
          lanes?.[r]!.post(i, now);
          continue;
        case kindCode.RESHARD:
          gather[st] = -1;
          break;
        case kindCode.REDUCE_GRAD:
          lanes?.[r]!.post(i, now);
          continue;
        default:
          break;
      }
      starts[i] = now;
      ends[i] = finish;
      if (kind[i]! <= kindCode.B || (costs.blocking !== undefined && costs.blocking[i] === 1)) {
        now = finish;
      }
    }
    positions[r] = i;
    clock[r] = now;
  }
  for (const lane of lanes ?? []) lane.flush();
  let complete = true;
  for (let r = 0; r < ranks; r++) if (positions[r]! < offsets[r + 1]!) complete = false;
  return { starts, ends, positions, complete };
}

function at(t: CostTable, stage: number, microbatch: number): number {
  return t.values[stage * t.perStage + microbatch * t.perMicrobatch]!;
}

/** A lane for each rank of a schedule that gathers or reduces weights. */
function weightLanes(
  s: Schedule,
  costs: ExecutionCosts,
  starts: Float64Array,
  ends: Float64Array,
): WeightLane[] | undefined {
  if (!s.kind.includes(kindCode.UNSHARD) && !s.kind.includes(kindCode.REDUCE_GRAD))
    return undefined;
  const priorities = weightPriorities(s);
  const duration = (i: number): Seconds =>
    (s.kind[i] === kindCode.UNSHARD ? costs.unshard : costs.reduceGradient)[s.stage[i]!]!;
  return Array.from({ length: s.ranks }, () => new WeightLane(starts, ends, priorities, duration));
}

/** A table with one value everywhere. */
export function constantCost(value: Seconds): CostTable {
  return { values: new Float64Array([value]), perStage: 0, perMicrobatch: 0 };
}

/** Every action takes one second and transfers nothing: only the order matters. */
export function unitCosts(s: Schedule): ExecutionCosts {
  const one = constantCost(1);
  const none = new Float64Array(s.stages);
  return {
    forward: one,
    backward: one,
    inputGradient: one,
    weightGradient: one,
    overlapped: undefined,
    up: none,
    down: none,
    blocking: undefined,
    unshard: none,
    reduceGradient: none,
  };
}

/**
 * Plays a collective's plan send by send: in each step a rank posts its sends, and goes on to the next
 * when what it receives in this one is there. A sender's messages leave one after the other, and a
 * receiver's come in one after the other; each is one event, its arrival.
 */
import {
  type Bytes,
  type BytesPerSecond,
  EventQueue,
  type Seconds,
  TriremeError,
} from "@trireme/core";
import type { CollectivePlan } from "@trireme/collectives";
import { rowBytes } from "./plan-bytes.ts";

/** What a message travels on. */
export interface Way {
  readonly bandwidth: BytesPerSecond;
  readonly latency: Seconds;
}

/** How a plan is played. */
export interface PlayPlanOptions {
  /** Buffer of one rank; see `chunkBytes`. */
  readonly bytes: Bytes;
  /** The way between two ranks of the plan; asked once for each pair. */
  readonly way: (from: number, to: number) => Way;
  /** When each rank begins; all at 0 when left out. */
  readonly start?: ArrayLike<number>;
}

/** What came of it. */
export interface PlayedPlan {
  /** The last rank's end. */
  readonly time: Seconds;
  /** When each rank has all that it receives. */
  readonly ends: Float64Array;
  /** Sends, each an event. */
  readonly events: number;
}

/** Plays a plan. Throws TriremeError "PLAN" for a plan with switches, or a way without bandwidth. */
export function playPlan(plan: CollectivePlan, o: PlayPlanOptions): PlayedPlan {
  const { ranks, steps, starts, source, target } = plan;
  if (plan.switches > 0) {
    throw new TriremeError(
      "PLAN",
      `${plan.algorithm} has ${plan.switches} switches that add; play a plan of ranks alone`,
    );
  }
  const bytes = rowBytes(plan, o.bytes);
  const rows = source.length;
  const { order, firstOf } = rowsBySender(plan);
  const waysOf = ways(o.way, ranks);
  /** Messages still to come in each step: [step, rank]. */
  const pending = new Int32Array(steps * ranks);
  const stepOf = new Int32Array(rows);
  for (let step = 0; step < steps; step++) {
    for (let row = starts[step]!; row < starts[step + 1]!; row++) {
      pending[step * ranks + target[row]!]!++;
      stepOf[row] = step;
    }
  }
  const queue = new EventQueue(4 * ranks);
  /** Step that each rank is in; -1 before it begins. */
  const at = new Int32Array(ranks).fill(-1);
  const outFree = new Float64Array(ranks);
  const inFree = new Float64Array(ranks);
  const ends = Float64Array.from({ length: ranks }, (_, rank) => o.start?.[rank] ?? 0);
  let events = 0;
  /** Posts the sends of a rank's steps until one of them waits for a message. */
  const advance = (rank: number, now: Seconds): void => {
    for (let step = at[rank]!; step < steps; step++) {
      at[rank] = step;
      const cell = step * ranks + rank;
      for (let i = firstOf[cell]!; i < firstOf[cell + 1]!; i++) {
        const row = order === undefined ? i : order[i]!;
        const to = target[row]!;
        const way = waysOf(rank, to);
        const time = bytes(row) / way.bandwidth;
        const leaves = now > outFree[rank]! ? now : outFree[rank]!;
        outFree[rank] = leaves + time;
        // The first byte may be there long before the receiver's way in is free.
        const comes = leaves + way.latency;
        const arrives = (comes > inFree[to]! ? comes : inFree[to]!) + time;
        inFree[to] = arrives;
        queue.push(arrives, row);
      }
      if (pending[cell]! > 0) return;
    }
    at[rank] = steps;
  };
  const begin = new EventQueue(ranks);
  for (let rank = 0; rank < ranks; rank++) begin.push(ends[rank]!, rank);
  for (;;) {
    // Ranks begin in order of time with what arrives.
    if (begin.size > 0 && begin.next <= queue.next) {
      const rank = begin.pop();
      at[rank] = 0;
      advance(rank, begin.now);
      continue;
    }
    if (queue.size === 0) break;
    const row = queue.pop();
    events++;
    const rank = target[row]!;
    const step = stepOf[row]!;
    ends[rank] = queue.now;
    if (--pending[step * ranks + rank]! > 0 || at[rank] !== step) continue;
    at[rank] = step + 1;
    advance(rank, queue.now);
  }
  if (events !== rows) {
    throw new TriremeError("PLAN", `${rows - events} of ${rows} sends of the plan never happened`);
  }
  return { time: ends.reduce((a, b) => Math.max(a, b), 0), ends, events };
}

/** Rows of each (step, sender): `order[firstOf[c]..]`, c = step × ranks + sender; none when in order already. */
function rowsBySender({ ranks, steps, starts, source }: CollectivePlan): {
  readonly order: Int32Array | undefined;
  readonly firstOf: Int32Array;
} {
  const firstOf = new Int32Array(steps * ranks + 1);
  let inOrder = true;
  for (let step = 0; step < steps; step++) {
    for (let row = starts[step]!; row < starts[step + 1]!; row++) {
      firstOf[step * ranks + source[row]! + 1]!++;
      if (row > starts[step]! && source[row]! < source[row - 1]!) inOrder = false;
    }
  }
  for (let c = 0; c < steps * ranks; c++) firstOf[c + 1]! += firstOf[c]!;
  if (inOrder) return { order: undefined, firstOf };
  const next = firstOf.slice();
  const order = new Int32Array(source.length);
  for (let step = 0; step < steps; step++) {
    for (let row = starts[step]!; row < starts[step + 1]!; row++) {
      order[next[step * ranks + source[row]!]!++] = row;
    }
  }
  return { order, firstOf };
}

/** Asks for each pair once; a ring's next neighbour is found without a look into the table. */
function ways(way: PlayPlanOptions["way"], ranks: number): PlayPlanOptions["way"] {
  const known = new Map<number, Way>();
  const lastTo = new Int32Array(ranks).fill(-1);
  const last: Way[] = [];
  return (from, to) => {
    if (lastTo[from] === to) return last[from]!;
    const key = from * ranks + to;
    let found = known.get(key);
    if (found === undefined) {
      found = way(from, to);
      if (!(found.bandwidth > 0 && found.latency >= 0)) {
        throw new TriremeError(
          "PLAN",
          `way from ${from} to ${to} of ${found.bandwidth} B/s and ${found.latency} s: give a bandwidth above 0 and a latency from 0 up`,
        );
      }
      known.set(key, found);
    }
    lastTo[from] = to;
    last[from] = found;
    return found;
  };
}

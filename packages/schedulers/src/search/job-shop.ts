/**
 * Pipeline scheduling as a job shop: ranks are machines; F, I and W of each stage and microbatch are
 * operations with durations, precedences and lags (transfers); a schedule is an order of the
 * operations of each rank. Operation 3·(s·M + m) + k is kind k (F 0, I 1, W 2) of stage s and
 * microbatch m. All searches work on this form and all times come from `evaluate`.
 */
import { kindCode } from "../action.ts";
import type { CostTable, ExecutionCosts } from "../execute.ts";
import { ScheduleBuilder, type ScheduleShape } from "../schedule-builder.ts";
import { type Schedule, stagesPerDirection } from "../schedule.ts";

export interface JobShop {
  readonly shape: ScheduleShape;
  readonly operations: number;
  readonly rank: Int32Array;
  readonly duration: Float64Array;
  /** Two predecessors for each operation, −1 for none, and the delay after each. */
  readonly before: Int32Array;
  readonly lag: Float64Array;
  /** Up to one dependent on another stage and the own next kind: two successors, −1 for none. */
  readonly after: Int32Array;
  /** Change of the rank's memory: + at F, − at W. */
  readonly memory: Float64Array;
  /** Most memory of each rank. */
  readonly limit: Float64Array;
}

/** Rows of operations, rank after rank as in a schedule's columns. */
export interface Order {
  readonly offsets: Int32Array;
  readonly row: Int32Array;
}

export function jobShop(
  shape: ScheduleShape,
  costs: ExecutionCosts,
  activation: Float64Array,
  limit: Float64Array,
): JobShop {
  const { stages, microbatches: M, stageRank } = shape;
  const chain = stagesPerDirection(shape);
  const share = M / shape.directions;
  const n = 3 * stages * M;
  const rank = new Int32Array(n).fill(-1);
  const duration = new Float64Array(n);
  const before = new Int32Array(2 * n).fill(-1);
  const after = new Int32Array(2 * n).fill(-1);
  const lag = new Float64Array(2 * n);
  const memory = new Float64Array(n);
  let operations = 0;
  const link = (from: number, to: number, slot: number, delay: number): void => {
    before[2 * to + slot] = from;
    lag[2 * to + slot] = delay;
    after[2 * from + slot] = to;
  };
  for (let s = 0; s < stages; s++) {
    const low = Math.floor(s / chain) * share;
    for (let m = low; m < low + share; m++) {
      const f = 3 * (s * M + m);
      operations += 3;
      for (let k = 0; k < 3; k++) rank[f + k] = stageRank[s]!;
      duration[f] = cost(costs.forward, s, m);
      duration[f + 1] = cost(costs.inputGradient, s, m);
      duration[f + 2] = cost(costs.weightGradient, s, m);
      memory[f] = activation[s]!;
      memory[f + 2] = -activation[s]!;
      // Slot 0 is the own stage (F → I → W), slot 1 the neighbour stage.
      link(f, f + 1, 0, 0);
      link(f + 1, f + 2, 0, 0);
      if (s % chain > 0) link(f - 3 * M, f, 1, costs.up[s - 1]!);
      if (s % chain < chain - 1) link(f + 3 * M + 1, f + 1, 1, costs.down[s + 1]!);
    }
  }
  return { shape, operations, rank, duration, before, lag, after, memory, limit };
}

function cost(t: CostTable, stage: number, microbatch: number): number {
  return t.values[stage * t.perStage + microbatch * t.perMicrobatch]!;
}

/** The order of a schedule, with each B as an I and a W. */
export function orderOf(s: Schedule): Order {
  const offsets = new Int32Array(s.ranks + 1);
  const row: number[] = [];
  for (let r = 0; r < s.ranks; r++) {
    for (let i = s.offsets[r]!; i < s.offsets[r + 1]!; i++) {
      const f = 3 * (s.stage[i]! * s.microbatches + s.microbatch[i]!);
      const k = s.kind[i]!;
      if (k <= kindCode.W) row.push(f + k);
      else if (k === kindCode.B) row.push(f + 1, f + 2);
    }
    offsets[r + 1] = row.length;
  }
  return { offsets, row: Int32Array.from(row) };
}

/** The schedule of an order. */
export function scheduleOf(shop: JobShop, order: Order, name: string): Schedule {
  const M = shop.shape.microbatches;
  const builder = new ScheduleBuilder({ ...shop.shape, name }, order.row.length);
  for (let r = 0; r < shop.shape.ranks; r++) {
    for (let i = order.offsets[r]!; i < order.offsets[r + 1]!; i++) {
      const key = Math.floor(order.row[i]! / 3);
      builder.add(order.row[i]! % 3, Math.floor(key / M), key % M);
    }
    builder.endRow();
  }
  return builder.finish();
}

/** Evaluates orders of one job shop again and again without allocation. */
export class Evaluator {
  readonly #shop: JobShop;
  readonly start: Float64Array;
  readonly end: Float64Array;
  /** The operation that an operation waited for last; −1 when it started at 0. */
  readonly critical: Int32Array;
  /** Position of each operation in the order's rows. */
  readonly place: Int32Array;
  /** The operation that ends last. */
  last = -1;
  readonly #next: Int32Array;
  readonly #waiting: Int32Array;
  readonly #stack: Int32Array;

  constructor(shop: JobShop) {
    const n = shop.rank.length;
    this.#shop = shop;
    this.start = new Float64Array(n);
    this.end = new Float64Array(n);
    this.critical = new Int32Array(n);
    this.place = new Int32Array(n);
    this.#next = new Int32Array(shop.shape.ranks);
    this.#waiting = new Int32Array(shop.shape.ranks);
    this.#stack = new Int32Array(shop.shape.ranks + 1);
  }

  /** Makespan of an order; Infinity in a deadlock. */
  evaluate(order: Order): number {
    const { rank, duration, before, lag, after } = this.#shop;
    const { start, end, critical, place } = this;
    const { offsets, row } = order;
    const next = this.#next;
    const waiting = this.#waiting;
    const stack = this.#stack;
    const ranks = next.length;
    end.fill(-1);
    let top = 0;
    for (let r = ranks - 1; r >= 0; r--) {
      next[r] = offsets[r]!;
      waiting[r] = -1;
      stack[top++] = r;
    }
    let done = 0;
    let makespan = 0;
    this.last = -1;
    while (top > 0) {
      const r = stack[--top]!;
      const limit = offsets[r + 1]!;
      let i = next[r]!;
      let previous = i > offsets[r]! ? row[i - 1]! : -1;
      let now = previous < 0 ? 0 : end[previous]!;
      for (; i < limit; i++) {
        const op = row[i]!;
        const own = before[2 * op]!;
        const other = before[2 * op + 1]!;
        if (own >= 0 && end[own]! < 0) break;
        if (other >= 0 && end[other]! < 0) {
          waiting[r] = other;
          break;
        }
        let cause = previous;
        if (other >= 0) {
          const arrival = end[other]! + lag[2 * op + 1]!;
          if (arrival > now) {
            now = arrival;
            cause = other;
          }
        }
        start[op] = now;
        now += duration[op]!;
        end[op] = now;
        critical[op] = cause;
        place[op] = i;
        previous = op;
        done++;
        const follower = after[2 * op + 1]!;
        if (follower >= 0) {
          const to = rank[follower]!;
          if (waiting[to] === op) {
            waiting[to] = -1;
            stack[top++] = to;
          }
        }
      }
      next[r] = i;
      if (now > makespan || (this.last < 0 && previous >= 0)) {
        makespan = now;
        this.last = previous;
      }
    }
    return done === row.length ? makespan : Infinity;
  }

  /** True when no rank holds more than its limit. */
  fits(order: Order): boolean {
    const { memory, limit } = this.#shop;
    for (let r = 0; r < limit.length; r++) {
      const most = limit[r]! * (1 + 1e-12);
      let held = 0;
      for (let i = order.offsets[r]!; i < order.offsets[r + 1]!; i++) {
        held += memory[order.row[i]!]!;
        if (held > most) return false;
      }
    }
    return true;
  }
}

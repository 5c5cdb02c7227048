/**
 * A lower bound on the makespan of every order of a job shop: for each rank alone the best
 * preemptive schedule, where an operation may not start before its head (the longest chain of
 * operations before it) and is followed by its tail (Jackson's preemptive schedule; Carlier, The
 * One-Machine Sequencing Problem, EJOR 11, 1982). With microbatches of equal cost, those of one stage
 * may be taken in order without loss, and memory for L of them makes F(i) wait for W(i−L); both
 * lengthen the chains.
 */
import { Heap, type Seconds } from "@trireme/core";
import type { JobShop } from "./job-shop.ts";

export interface LowerBoundOptions {
  /** Whether all microbatches of a stage cost the same. */
  readonly uniform: boolean;
}

/** No order of the shop is faster. */
export function lowerBound(shop: JobShop, o: LowerBoundOptions): Seconds {
  const { head, tail } = chains(shop, o.uniform ? sameStage(shop) : () => []);
  const byRank: number[][] = Array.from({ length: shop.shape.ranks }, () => []);
  for (let op = 0; op < shop.rank.length; op++) {
    if (shop.rank[op]! >= 0) byRank[shop.rank[op]!]!.push(op);
  }
  return Math.max(0, ...byRank.map((ops) => preemptive(shop, ops, head, tail)));
}

/**
 * Longest chains that end before each operation's start (head) and that begin after its end (tail).
 * @param extra Operations of the same rank that an operation comes after, beyond its inputs.
 */
export function chains(
  shop: JobShop,
  extra: (op: number) => number[],
): { head: Float64Array; tail: Float64Array } {
  const { duration, before, lag } = shop;
  const n = shop.rank.length;
  const [head, tail] = [new Float64Array(n), new Float64Array(n)];
  const order = topological(shop);
  for (const op of order) {
    let from = 0;
    for (let k = 0; k < 2; k++) {
      const p = before[2 * op + k]!;
      if (p >= 0) from = Math.max(from, head[p]! + duration[p]! + lag[2 * op + k]!);
    }
    for (const p of extra(op)) from = Math.max(from, head[p]! + duration[p]!);
    head[op] = from;
  }
  for (let i = order.length - 1; i >= 0; i--) {
    const op = order[i]!;
    const behind = duration[op]! + tail[op]!;
    for (let k = 0; k < 2; k++) {
      const p = before[2 * op + k]!;
      if (p >= 0) tail[p] = Math.max(tail[p]!, behind + lag[2 * op + k]!);
    }
    for (const p of extra(op)) tail[p] = Math.max(tail[p]!, behind);
  }
  return { head, tail };
}

/** Microbatch by microbatch: forwards up the stages, gradients of inputs down, then of weights. */
function topological(shop: JobShop): number[] {
  const { stages, microbatches: M } = shop.shape;
  const order: number[] = [];
  for (let m = 0; m < M; m++) {
    for (let s = 0; s < stages; s++) order.push(3 * (s * M + m));
    for (let s = stages - 1; s >= 0; s--) order.push(3 * (s * M + m) + 1, 3 * (s * M + m) + 2);
  }
  return order.filter((op) => shop.rank[op]! >= 0);
}

/** Operations of the same stage that come before an operation without loss. */
export function sameStage(shop: JobShop): (op: number) => number[] {
  const { rank, memory, limit } = shop;
  const M = shop.shape.microbatches;
  return (op) => {
    const out: number[] = [];
    const key = Math.floor(op / 3);
    const m = key % M;
    if (m > 0 && rank[op - 3]! >= 0) out.push(op - 3);
    if (op % 3 === 0 && memory[op]! > 0) {
      const fits = Math.floor((limit[rank[op]!]! * (1 + 1e-12)) / memory[op]!);
      if (fits >= 1 && m - fits >= 0 && rank[op - 3 * fits]! >= 0) out.push(op - 3 * fits + 2);
    }
    return out;
  };
}

/** End of Jackson's preemptive schedule: always run the operation with the longest tail. */
function preemptive(
  shop: JobShop,
  operations: readonly number[],
  head: Float64Array,
  tail: Float64Array,
): Seconds {
  const byHead = [...operations].sort((a, b) => head[a]! - head[b]!);
  const left = new Map<number, number>();
  const ready = new Heap<number>((a, b) => tail[a]! > tail[b]!);
  let now = 0;
  let end = 0;
  let next = 0;
  while (next < byHead.length || ready.size > 0) {
    if (ready.size === 0) now = Math.max(now, head[byHead[next]!]!);
    while (next < byHead.length && head[byHead[next]!]! <= now) {
      const op = byHead[next++]!;
      left.set(op, shop.duration[op]!);
      ready.push(op);
    }
    const op = ready.pop()!;
    const rest = left.get(op)!;
    const until = next < byHead.length ? head[byHead[next]!]! : Infinity;
    if (now + rest <= until) {
      now += rest;
      end = Math.max(end, now + tail[op]!);
    } else {
      left.set(op, rest - (until - now));
      now = until;
      ready.push(op);
    }
  }
  return end;
}

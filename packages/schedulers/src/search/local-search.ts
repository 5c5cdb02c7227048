/**
 * Improves an order by swapping neighbours on a rank along the critical path (van Laarhoven, Aarts,
 * Lenstra, Job Shop Scheduling by Simulated Annealing, Operations Research 40, 1992: such swaps never
 * make a cycle, and some sequence of them leads to an optimum). Worse orders are accepted by late
 * acceptance (Burke and Bykov, The Late Acceptance Hill-Climbing Heuristic, EJOR 258, 2017): when
 * they are no worse than the order some steps ago.
 */
import type { Rng } from "@trireme/core";
import { Evaluator, type JobShop, type Order } from "./job-shop.ts";

export interface LocalSearchOptions {
  /** Operations to visit, over all evaluations. */
  readonly budget: number;
  /** Stop when the makespan reaches this lower bound. */
  readonly bound: number;
  readonly rng: Rng;
}

/** The best order found from `from` on, and its makespan. */
export function localSearch(
  shop: JobShop,
  from: Order,
  o: LocalSearchOptions,
): { readonly order: Order; readonly makespan: number } {
  const evaluator = new Evaluator(shop);
  const order: Order = { offsets: from.offsets, row: from.row.slice() };
  const { row } = order;
  let current = evaluator.evaluate(order);
  let best = current;
  let bestRow = row.slice();
  const history = new Float64Array(50).fill(current);
  const swaps: number[] = [];
  const enough = o.bound * (1 + 1e-9);
  const steps = Math.floor(o.budget / Math.max(1, row.length));
  let fresh = true;
  for (let step = 0; step < steps && best > enough; step++) {
    if (fresh) {
      collectSwaps(shop, evaluator, order, swaps);
      fresh = false;
    }
    if (swaps.length === 0) break;
    const i = swaps[o.rng.integer(swaps.length)]!;
    const [a, b] = [row[i]!, row[i + 1]!];
    row[i] = b;
    row[i + 1] = a;
    const makespan = evaluator.evaluate(order);
    const slot = step % history.length;
    if (makespan <= current || makespan <= history[slot]!) {
      current = makespan;
      fresh = true;
      if (makespan < best) {
        best = makespan;
        bestRow = row.slice();
      }
    } else {
      row[i] = a;
      row[i + 1] = b;
    }
    history[slot] = current;
  }
  return { order: { offsets: from.offsets, row: bestRow }, makespan: best };
}

/**
 * Positions i whose operation may change places with the next: both on the critical path, the second
 * not made from the first, of another kind or stage, and the memory limit kept.
 */
function collectSwaps(shop: JobShop, evaluator: Evaluator, order: Order, swaps: number[]): void {
  const { rank, before, memory, limit } = shop;
  const M = shop.shape.microbatches;
  const held = heldBefore(shop, order);
  swaps.length = 0;
  const { critical, place } = evaluator;
  let op = evaluator.last;
  while (op >= 0) {
    const cause = critical[op]!;
    if (cause < 0) return;
    const at = place[cause]!;
    const neighbours = rank[cause] === rank[op] && at === place[op]! - 1;
    const needs = before[2 * op] === cause || before[2 * op + 1] === cause;
    const alike = op % 3 === cause % 3 && Math.floor(op / 3 / M) === Math.floor(cause / 3 / M);
    const fits = held[at]! + memory[op]! <= limit[rank[op]!]! * (1 + 1e-12);
    if (neighbours && !needs && !alike && (fits || memory[op]! <= 0)) swaps.push(at);
    op = cause;
  }
}

/** Memory that each position's rank holds before it. */
function heldBefore(shop: JobShop, order: Order): Float64Array {
  const held = new Float64Array(order.row.length);
  for (let r = 0; r < shop.shape.ranks; r++) {
    let now = 0;
    for (let i = order.offsets[r]!; i < order.offsets[r + 1]!; i++) {
      held[i] = now;
      now += shop.memory[order.row[i]!]!;
    }
  }
  return held;
}

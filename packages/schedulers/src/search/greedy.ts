/**
 * Builds an order operation by operation (list scheduling; Giffler and Thompson, Algorithms for
 * Solving Production-Scheduling Problems, 1960): of all ranks the one whose next operation can start
 * first takes, of the operations that compete for that time, the one that the rule prefers. As in
 * the heuristic of Qi et al. (Zero Bubble Pipeline Parallelism, ICLR 2024, §3), gradients of inputs
 * come first, forwards as far as memory allows, and gradients of weights fill what is left.
 */
import type { JobShop, Order } from "./job-shop.ts";

export interface GreedyRule {
  /** Preference of F, I and W; the smallest goes first. */
  readonly preference: readonly [number, number, number];
  /**
   * 0: a rank never stands idle while an operation can run. 1: it may wait for a preferred one that
   * starts before the other would end. Between: in proportion.
   */
  readonly patience: number;
  /** Most microbatches of all chunks that rank r starts before it ends their W; Infinity: memory. */
  readonly inFlight: (rank: number) => number;
  /** True: of several chunks the last is preferred; false: the one whose turn came first. */
  readonly deepFirst: boolean;
}

/** The order that the rule gives; undefined when it runs into a memory deadlock. */
export function greedyOrder(shop: JobShop, rule: GreedyRule): Order | undefined {
  const { shape, rank, duration, before, lag, memory, limit } = shop;
  const { ranks, stages, microbatches: M, stageRank } = shape;
  const chain = stages / shape.directions;
  const share = M / shape.directions;
  const end = new Float64Array(rank.length).fill(-1);
  const free = new Float64Array(ranks);
  const held = new Float64Array(ranks);
  const flying = new Int32Array(ranks);
  // Next microbatch of each kind on each stage.
  const next = new Int32Array(3 * stages);
  const stop = new Int32Array(stages);
  const rows = Array.from({ length: ranks }, (): number[] => []);
  const stagesOf = Array.from({ length: ranks }, (): number[] => []);
  // Memory that a microbatch still needs on a rank after its F on this stage, to come out again.
  const reserve = new Float64Array(stages);
  for (let s = stages - 1; s >= 0; s--) {
    stagesOf[stageRank[s]!]!.unshift(s);
    const low = Math.floor(s / chain) * share;
    for (let k = 0; k < 3; k++) next[3 * s + k] = low;
    stop[s] = low + share;
  }
  for (const own of stagesOf) {
    for (const s of own) {
      for (const later of own) {
        if (later > s && Math.floor(later / chain) === Math.floor(s / chain)) {
          reserve[s]! += memory[3 * (later * M + next[3 * later]!)]!;
        }
      }
    }
  }
  // Earliest start and end over a rank's candidates, kept until something it depends on changes.
  const earliest = new Float64Array(ranks);
  const stale = new Uint8Array(ranks).fill(1);
  /** When an operation could start on its rank; Infinity when it cannot yet. */
  const startOf = (op: number, r: number): number => {
    const own = before[2 * op]!;
    const other = before[2 * op + 1]!;
    if (own >= 0 && end[own]! < 0) return Infinity;
    if (other < 0) return free[r]!;
    return end[other]! < 0 ? Infinity : Math.max(free[r]!, end[other]! + lag[2 * op + 1]!);
  };
  const allowed = (kind: number, s: number, r: number, op: number): boolean =>
    kind !== 0 ||
    (held[r]! + memory[op]! + reserve[s]! <= limit[r]! * (1 + 1e-12) &&
      flying[r]! < rule.inFlight(r));
  const candidates = (
    r: number,
    visit: (op: number, start: number, kind: number, s: number) => void,
  ): void => {
    for (const s of stagesOf[r]!) {
      for (let kind = 0; kind < 3; kind++) {
        const m = next[3 * s + kind]!;
        if (m >= stop[s]!) continue;
        const op = 3 * (s * M + m) + kind;
        const start = startOf(op, r);
        if (start < Infinity && allowed(kind, s, r, op)) visit(op, start, kind, s);
      }
    }
  };
  for (let left = shop.operations; left > 0; left--) {
    let r = -1;
    for (let q = 0; q < ranks; q++) {
      if (stale[q] === 1) {
        stale[q] = 0;
        let first = Infinity;
        candidates(q, (_, start) => {
          if (start < first) first = start;
        });
        earliest[q] = first;
      }
      if (earliest[q]! < (r < 0 ? Infinity : earliest[r]!)) r = q;
    }
    if (r < 0) return undefined;
    let firstEnd = Infinity;
    candidates(r, (op, start) => {
      firstEnd = Math.min(firstEnd, start + duration[op]!);
    });
    const horizon = earliest[r]! + rule.patience * (firstEnd - earliest[r]!);
    let best = -1;
    let bestScore = Infinity;
    candidates(r, (op, start, kind, s) => {
      if (start > horizon || (start === horizon && start > earliest[r]!)) return;
      const turn = rule.deepFirst ? 1 - s / stages : next[3 * s + kind]! / M;
      const score = rule.preference[kind]! + 0.9 * turn;
      if (score < bestScore) [best, bestScore] = [op, score];
    });
    const start = startOf(best, r);
    const kind = best % 3;
    const s = Math.floor(best / 3 / M);
    end[best] = start + duration[best]!;
    free[r] = end[best]!;
    held[r]! += memory[best]!;
    if (kind === 0) flying[r]!++;
    else if (kind === 2) flying[r]!--;
    next[3 * s + kind]!++;
    rows[r]!.push(best);
    stale[r] = 1;
    const neighbour = kind === 0 ? s + 1 : kind === 1 ? s - 1 : -1;
    if (neighbour >= 0 && neighbour < stages) stale[stageRank[neighbour]!] = 1;
  }
  const offsets = new Int32Array(ranks + 1);
  for (let r = 0; r < ranks; r++) offsets[r + 1] = offsets[r]! + rows[r]!.length;
  return { offsets, row: Int32Array.from(rows.flat()) };
}

/** The rules that the search tries: orders of preference × patience × depth of the warm-up. */
export function greedyRules(shop: JobShop): GreedyRule[] {
  const { ranks, chunks } = shop.shape;
  const depths: ((rank: number) => number)[] = [
    () => Infinity,
    (r) => chunks * (ranks - r),
    (r) => chunks * (2 * (ranks - r) - 1),
    () => chunks * ranks,
  ];
  const preferences: (readonly [number, number, number])[] = [
    [1, 0, 2],
    [0, 1, 2],
    [2, 0, 1],
  ];
  const rules: GreedyRule[] = [];
  for (const inFlight of depths) {
    for (const preference of preferences) {
      for (const patience of [0, 0.5, 1]) {
        for (const deepFirst of chunks === 1 ? [false] : [false, true]) {
          rules.push({ preference, patience, inFlight, deepFirst });
        }
      }
    }
  }
  return rules;
}

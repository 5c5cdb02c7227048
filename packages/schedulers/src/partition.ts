/**
 * Balances a chain of layers over stages: contiguous shares that make the slowest stage as fast as
 * memory allows, by exact dynamic programming over (stage, layers placed). Embedding and loss are
 * elements of the chain like any layer. Stages may differ in speed and memory (Yan et al., HexiScale,
 * MLSys 2026): costs and limits are given per stage.
 */
import { type Bytes, type Seconds, TriremeError } from "@trireme/core";
import type { StageLayout } from "./layout.ts";

export interface BalanceOptions {
  /** Elements of the chain, in order: `E`, `t`, `m`, `L` as in a layout. */
  readonly elements: string;
  readonly ranks: number;
  /** Stages per rank; 1 when left out. */
  readonly chunks?: number;
  /** Time of an element on a stage. */
  readonly cost: (element: number, stage: number) => Seconds;
  /** Memory of an element on a stage (weights, and the activations that the schedule holds there). */
  readonly memory?: (element: number, stage: number) => Bytes;
  /** Memory of a stage; of a rank with several stages, the share of each. Infinity when left out. */
  readonly memoryLimit?: (stage: number) => Bytes;
  /** Whether a stage may stay without elements; false when left out. */
  readonly allowEmpty?: boolean;
}

export type Balance =
  | {
      readonly ok: true;
      readonly layout: StageLayout;
      /** Elements of each stage. */
      readonly counts: readonly number[];
      /** Time of each stage. */
      readonly costs: readonly Seconds[];
      /** The largest of `costs`; no partition has a smaller one. */
      readonly bottleneck: Seconds;
    }
  | { readonly ok: false; readonly reason: string };

/**
 * The partition with the smallest bottleneck; of several, the one with the smallest sum of squares.
 * O(stages · elements²).
 * @throws TriremeError `PARTITION` on counts or costs out of range.
 */
export function balanceStages(o: BalanceOptions): Balance {
  const { ranks, chunks = 1 } = o;
  const stages = ranks * chunks;
  if (!(Number.isInteger(ranks) && ranks >= 1 && Number.isInteger(chunks) && chunks >= 1)) {
    throw new TriremeError(
      "PARTITION",
      `${ranks} ranks x ${chunks} chunks; both are integers of 1 or more`,
    );
  }
  if (stages > 2 ** 16) {
    throw new TriremeError(
      "PARTITION",
      `${ranks} ranks x ${chunks} chunks = ${stages} stages; at most 65536`,
    );
  }
  const strange = /[^EtmL]/.exec(o.elements);
  if (strange !== null) {
    throw new TriremeError(
      "PARTITION",
      `element ${strange.index} is ${strange[0]}; the letters are E, t, m and L`,
    );
  }
  const n = o.elements.length;
  if (n < stages && o.allowEmpty !== true) {
    return {
      ok: false,
      reason: `${n} elements are fewer than ${stages} stages; allow empty stages or use ${n} stages`,
    };
  }
  const sums = Array.from({ length: stages }, (_, s) => prefixSums(o, s));
  const bottleneck = solve(o, sums, (most, cost) => Math.max(most, cost), Infinity);
  if (bottleneck === undefined) return { ok: false, reason: memoryReason(o, sums) };
  const most = Math.max(...costsOf(sums, bottleneck));
  const even = solve(o, sums, (sum, cost) => sum + cost * cost, most * (1 + 1e-12)) ?? bottleneck;
  const counts = even.map((end, s) => end - (even[s - 1] ?? 0));
  const layout = {
    ranks,
    chunks,
    stages: even.map((end, s) => o.elements.slice(even[s - 1] ?? 0, end)),
  };
  const costs = costsOf(sums, even);
  return { ok: true, layout, counts, costs, bottleneck: Math.max(...costs) };
}

/** Sums over the first i elements on one stage. */
interface Sums {
  readonly cost: Float64Array;
  readonly memory: Float64Array;
  readonly limit: number;
}

function prefixSums(o: BalanceOptions, stage: number): Sums {
  const n = o.elements.length;
  const [cost, memory] = [new Float64Array(n + 1), new Float64Array(n + 1)];
  for (let i = 0; i < n; i++) {
    const [c, m] = [o.cost(i, stage), o.memory?.(i, stage) ?? 0];
    if (!(c >= 0 && c < Infinity && m >= 0 && m < Infinity)) {
      throw new TriremeError(
        "PARTITION",
        `element ${i} (${o.elements[i]}) on stage ${stage} has cost ${c} and memory ${m}; both are finite and at least 0`,
      );
    }
    cost[i + 1] = cost[i]! + c;
    memory[i + 1] = memory[i]! + m;
  }
  const limit = o.memoryLimit?.(stage) ?? Infinity;
  if (!(limit >= 0)) {
    throw new TriremeError(
      "PARTITION",
      `memory limit of stage ${stage} is ${limit}; it is at least 0`,
    );
  }
  return { cost, memory, limit };
}

/** Ends of the stages of the partition that minimises `add` folded over the stages' costs. */
function solve(
  o: BalanceOptions,
  sums: readonly Sums[],
  add: (soFar: number, cost: number) => number,
  mostCost: number,
): number[] | undefined {
  const n = o.elements.length;
  const least = o.allowEmpty === true ? 0 : 1;
  let value = new Float64Array(n + 1).fill(Infinity);
  value[0] = 0;
  const from = sums.map(() => new Int32Array(n + 1).fill(-1));
  for (const [s, { cost, memory, limit }] of sums.entries()) {
    const next = new Float64Array(n + 1).fill(Infinity);
    for (let end = 0; end <= n; end++) {
      // A longer share only costs more: the first that is too large ends the search.
      for (let start = end - least; start >= 0; start--) {
        const c = cost[end]! - cost[start]!;
        if (c > mostCost || memory[end]! - memory[start]! > limit * (1 + 1e-12)) break;
        if (value[start] === Infinity) continue;
        const total = add(value[start]!, c);
        if (total < next[end]!) {
          next[end] = total;
          from[s]![end] = start;
        }
      }
    }
    value = next;
  }
  if (value[n] === Infinity) return undefined;
  const ends: number[] = [];
  for (let s = sums.length - 1, end = n; s >= 0; s--) {
    ends.unshift(end);
    end = from[s]![end]!;
  }
  return ends;
}

function costsOf(sums: readonly Sums[], ends: readonly number[]): number[] {
  return ends.map((end, s) => sums[s]!.cost[end]! - sums[s]!.cost[ends[s - 1] ?? 0]!);
}

function memoryReason(o: BalanceOptions, sums: readonly Sums[]): string {
  const room = sums.reduce((a, s) => a + s.limit, 0);
  const needs = Math.min(...sums.map((s) => s.memory[o.elements.length]!));
  return `no contiguous shares fit the memory: the chain needs at least ${needs}, the ${sums.length} stages have ${room} together`;
}

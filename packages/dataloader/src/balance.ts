/**
 * Work dealt to groups (data-parallel ranks, microbatches) so that the slowest has as little as can be:
 * each step waits for it. Costs are numbers of the caller's, such as those of `sequenceCost`.
 */
import { Heap, TriremeError } from "@trireme/core";

/** Items dealt to groups. */
export interface Balance {
  /** The group of each item. */
  readonly groupOf: Int32Array;
  /** Sum of costs of each group. */
  readonly loads: Float64Array;
}

/** How to deal. */
export interface BalanceOptions {
  /** Work of each item, at least 0. */
  readonly costs: ArrayLike<number>;
  readonly groups: number;
  /**
   * Whether all groups get the same number of items (one more for some where they do not divide), as
   * batches of a fixed shape need. Default false.
   */
  readonly equalCounts?: boolean;
}

/** Coefficients of the work of a sequence. */
export interface SequenceCost {
  /** Per token: the matrix multiplications. */
  readonly linear: number;
  /** Per pair of tokens: attention. */
  readonly quadratic: number;
}

/** Work of sequences packed into one row: a·Σl + b·Σl², as attention stays within each. */
export function sequenceCost(
  { linear, quadratic }: SequenceCost,
  lengths: Iterable<number>,
): number {
  let cost = 0;
  for (const length of lengths) cost += linear * length + quadratic * length * length;
  return cost;
}

/**
 * Greedy: the largest item that is left to the group with the least work, of equals the first (longest
 * processing time first; Graham, Bounds on multiprocessing timing anomalies, 1969: at most 4/3 − 1/(3g)
 * of the best). O(n log n).
 */
export function balanceGreedy(options: BalanceOptions): Balance {
  const { costs, groups, equalCounts = false } = checked(options);
  const groupOf = new Int32Array(costs.length);
  const loads = new Float64Array(groups);
  const room = roomOf(costs.length, groups, equalCounts);
  const open = new Heap<number>(
    (a, b) => loads[a]! < loads[b]! || (loads[a] === loads[b] && a < b),
  );
  for (let group = 0; group < groups; group++) if (room[group]! > 0) open.push(group);
  for (const item of largestFirst(costs)) {
    const group = open.pop()!;
    groupOf[item] = group;
    loads[group]! += costs[item]!;
    room[group]!--;
    if (room[group]! > 0) open.push(group);
  }
  return { groupOf, loads };
}

/** A partial deal: group loads ascending, each with its items as a chain; see below. */
interface Part {
  readonly spread: number;
  readonly entered: number;
  readonly loads: Float64Array;
  /** First item of each group's chain, -1 for none, and its last. */
  readonly heads: Int32Array;
  readonly tails: Int32Array;
}

/**
 * Karmarkar and Karp's largest differencing method for any number of groups (The differencing method
 * of set partitioning, 1982): partial deals are merged, the two most uneven first, the heaviest group
 * of one with the lightest of the other. With `equalCounts` it starts from deals of one item to each
 * group, so that counts stay equal (Michiels et al., Performance ratios for the differencing method
 * applied to the balanced number partitioning problem, STACS 2003). O(n g log n).
 */
export function balanceKarmarkarKarp(options: BalanceOptions): Balance {
  const { costs, groups, equalCounts = false } = checked(options);
  const groupOf = new Int32Array(costs.length);
  const loads = new Float64Array(groups);
  if (costs.length === 0) return { groupOf, loads };
  const order = largestFirst(costs);
  const next = new Int32Array(costs.length).fill(-1);
  // Most uneven first, then first in: the same deal on every machine.
  const heap = new Heap<Part>(
    (a, b) => a.spread > b.spread || (a.spread === b.spread && a.entered < b.entered),
  );
  let entered = 0;
  const step = equalCounts ? groups : 1;
  for (let i = 0; i < order.length; i += step) {
    heap.push(startPart(costs, order.subarray(i, i + step), groups, entered++));
  }
  while (heap.size > 1) heap.push(merge(heap.pop()!, heap.pop()!, next, entered++));
  const { loads: final, heads } = heap.pop()!;
  // Heaviest first, as the greedy deal has them.
  for (let group = 0; group < groups; group++) {
    const from = groups - 1 - group;
    loads[group] = final[from]!;
    for (let item = heads[from]!; item !== -1; item = next[item]!) groupOf[item] = group;
  }
  return { groupOf, loads };
}

function startPart(
  costs: ArrayLike<number>,
  items: Uint32Array,
  groups: number,
  entered: number,
): Part {
  const loads = new Float64Array(groups);
  const heads = new Int32Array(groups).fill(-1);
  // Items come largest first, loads go ascending.
  items.forEach((item, k) => {
    loads[groups - 1 - k] = costs[item]!;
    heads[groups - 1 - k] = item;
  });
  return { spread: loads[groups - 1]! - loads[0]!, entered, loads, heads, tails: heads.slice() };
}

function merge(a: Part, b: Part, next: Int32Array, entered: number): Part {
  const groups = a.loads.length;
  const sums = a.loads.map((load, i) => load + b.loads[groups - 1 - i]!);
  const order = Uint32Array.from(sums, (_, i) => i).sort((i, j) => sums[i]! - sums[j]! || i - j);
  const heads = new Int32Array(groups);
  const tails = new Int32Array(groups);
  order.forEach((from, to) => {
    const other = groups - 1 - from;
    if (a.tails[from] !== -1 && b.heads[other] !== -1) next[a.tails[from]!] = b.heads[other]!;
    heads[to] = a.heads[from] === -1 ? b.heads[other]! : a.heads[from]!;
    tails[to] = b.tails[other] === -1 ? a.tails[from]! : b.tails[other]!;
  });
  const loads = Float64Array.from(order, (from) => sums[from]!);
  return { spread: loads[groups - 1]! - loads[0]!, entered, loads, heads, tails };
}

function roomOf(items: number, groups: number, equalCounts: boolean): Float64Array {
  if (!equalCounts) return new Float64Array(groups).fill(Infinity);
  const extra = items % groups;
  return Float64Array.from(
    { length: groups },
    (_, g) => (items - extra) / groups + (g < extra ? 1 : 0),
  );
}

function largestFirst(costs: ArrayLike<number>): Uint32Array {
  return Uint32Array.from({ length: costs.length }, (_, i) => i).sort(
    (a, b) => costs[b]! - costs[a]! || a - b,
  );
}

function checked(options: BalanceOptions): BalanceOptions {
  const { costs, groups } = options;
  if (!Number.isInteger(groups) || groups < 1) {
    throw new TriremeError("BALANCE", `${groups} groups; use a positive integer`);
  }
  for (let i = 0; i < costs.length; i++) {
    if (!(costs[i]! >= 0 && costs[i]! < Infinity)) {
      throw new TriremeError(
        "BALANCE",
        `item ${i} costs ${costs[i]}; costs are finite and at least 0`,
      );
    }
  }
  return options;
}

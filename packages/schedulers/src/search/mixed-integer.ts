/**
 * Pipeline scheduling as a mixed-integer program (Manne, On the Job-Shop Scheduling Problem,
 * Operations Research 8, 1960): a start time for each operation, and for each pair on a rank whose
 * order is open a binary that is 1 when the first goes first. Chains of equal microbatches, memory,
 * and the windows that an upper bound on the makespan leaves close most pairs beforehand.
 */
import type { JobShop, Order } from "./job-shop.ts";
import { chains, sameStage } from "./lower-bound.ts";

/** The program in CPLEX LP format, and how to read its solution. */
export interface MixedInteger {
  readonly text: string;
  /** Number of open pairs. */
  readonly binaries: number;
  /** The order that the start times of a solution say. */
  orderOf(start: (operation: number) => number): Order;
}

/**
 * Builds the program for schedules no slower than `upper` that take microbatches of a stage in order.
 * @param unit A time by which all numbers are divided, so that the solver sees values around 1.
 */
export function mixedInteger(shop: JobShop, upper: number, unit: number): MixedInteger {
  const { duration, before, lag, rank, memory, limit } = shop;
  const { ranks, microbatches: M } = shop.shape;
  const operations = [...rank.keys()].filter((op) => rank[op]! >= 0);
  const inOrder = orderedChains(shop);
  const { head, tail } = chains(shop, inOrder);
  const latest = (op: number): number => upper - tail[op]! - duration[op]!;
  const number = (x: number): string => (x / unit).toPrecision(12);
  const reach = closure(shop, operations, inOrder);
  const rows: string[] = [];
  for (const op of operations) {
    rows.push(`C - t${op} >= ${number(duration[op]! + tail[op]!)}`);
    for (let k = 0; k < 2; k++) {
      const p = before[2 * op + k]!;
      if (p >= 0) rows.push(`t${op} - t${p} >= ${number(duration[p]! + lag[2 * op + k]!)}`);
    }
    for (const p of inOrder(op)) rows.push(`t${op} - t${p} >= ${number(duration[p]!)}`);
  }
  const open: string[] = [];
  // Whether a goes before b: 1 or 0 when that is settled, else the name of the binary, ! for its opposite.
  const settled = (a: number, b: number): 0 | 1 | undefined => {
    if (reach.has(a * rank.length + b)) return 1;
    if (reach.has(b * rank.length + a)) return 0;
    if (head[b]! + duration[b]! > latest(a) + 1e-9 * upper) return 1;
    if (head[a]! + duration[a]! > latest(b) + 1e-9 * upper) return 0;
    return undefined;
  };
  for (let r = 0; r < ranks; r++) {
    const own = operations.filter((op) => rank[op] === r);
    for (const [i, a] of own.entries()) {
      for (const b of own.slice(i + 1)) {
        const order = settled(a, b);
        if (order !== undefined) {
          const [first, second] = order === 1 ? [a, b] : [b, a];
          if (!reach.has(first * rank.length + second)) {
            rows.push(`t${second} - t${first} >= ${number(duration[first]!)}`);
          }
          continue;
        }
        const y = `y${a}_${b}`;
        open.push(y);
        const slackA = latest(a) + duration[a]! - head[b]!;
        const slackB = latest(b) + duration[b]! - head[a]!;
        rows.push(`t${b} - t${a} - ${number(slackA)} ${y} >= ${number(duration[a]! - slackA)}`);
        rows.push(`t${a} - t${b} + ${number(slackB)} ${y} >= ${number(duration[b]!)}`);
      }
    }
    if (limit[r]! < Infinity) rows.push(...memoryRows(shop, own, r, settled));
  }
  const bounds = operations.map((op) => `${number(head[op]!)} <= t${op} <= ${number(latest(op))}`);
  const text = [
    "Minimize",
    " makespan: C",
    "Subject To",
    ...rows.map((row, i) => ` r${i}: ${row}`),
    "Bounds",
    ` 0 <= C <= ${number(upper)}`,
    ...bounds.map((b) => ` ${b}`),
    ...(open.length > 0 ? ["Binaries", ` ${open.join("\n ")}`] : []),
    "End",
    "",
  ].join("\n");
  return {
    text,
    binaries: open.length,
    orderOf: (start) => {
      const offsets = new Int32Array(ranks + 1);
      const row: number[] = [];
      for (let r = 0; r < ranks; r++) {
        const own = operations.filter((op) => rank[op] === r);
        // Operations without duration may start together: those made first go first.
        own.sort((a, b) => {
          const apart = start(a) - start(b);
          if (Math.abs(apart) * unit > 1e-7 * upper) return apart;
          return reach.has(a * rank.length + b) ? -1 : reach.has(b * rank.length + a) ? 1 : apart;
        });
        row.push(...own);
        offsets[r + 1] = row.length;
      }
      return { offsets, row: Int32Array.from(row) };
    },
  };

  /** What is held when each F has started: 1 for each F up to it less 1 for each W before it. */
  function memoryRows(
    s: JobShop,
    own: readonly number[],
    r: number,
    order: (a: number, b: number) => 0 | 1 | undefined,
  ): string[] {
    const out: string[] = [];
    for (const f of own) {
      if (memory[f]! <= 0) continue;
      let constant = memory[f]!;
      const terms: string[] = [];
      for (const op of own) {
        if (op === f || memory[op] === 0) continue;
        const known = order(op, f);
        if (known !== undefined) {
          constant += known * memory[op]!;
        } else if (op < f) {
          terms.push(`${signed(memory[op]!)} y${op}_${f}`);
        } else {
          constant += memory[op]!;
          terms.push(`${signed(-memory[op]!)} y${f}_${op}`);
        }
      }
      const room = s.limit[r]! * (1 + 1e-12) - constant;
      if (terms.length > 0) out.push(`${terms.join(" ")} <= ${room.toPrecision(12)}`);
    }
    return out;
  }

  /** Microbatches of a stage in order, by kind; and, for one stage per rank, F after the W it waits for. */
  function orderedChains(s: JobShop): (op: number) => number[] {
    const all = sameStage(s);
    if (s.shape.chunks === 1) return all;
    // With several stages per rank memory is a row of its own.
    return (op) => (op % 3 === 0 && op % (3 * M) >= 3 ? [op - 3] : all(op));
  }
}

function signed(x: number): string {
  return x < 0 ? `- ${-x}` : `+ ${x}`;
}

/** Pairs (a, b) for which a must end before b starts, as a · n + b. */
function closure(
  shop: JobShop,
  operations: readonly number[],
  inOrder: (op: number) => number[],
): Set<number> {
  const n = shop.rank.length;
  const above = new Map<number, Set<number>>();
  const visit = (op: number): Set<number> => {
    const known = above.get(op);
    if (known !== undefined) return known;
    const set = new Set<number>();
    above.set(op, set);
    const direct = [shop.before[2 * op]!, shop.before[2 * op + 1]!, ...inOrder(op)];
    for (const p of direct) {
      if (p < 0) continue;
      set.add(p);
      for (const q of visit(p)) set.add(q);
    }
    return set;
  };
  const pairs = new Set<number>();
  for (const op of operations) for (const p of visit(op)) pairs.add(p * n + op);
  return pairs;
}

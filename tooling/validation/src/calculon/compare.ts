/** Calculon's error and ours on the same rows. */
import type { Compared } from "../outcome.ts";
import { quantile } from "../score.ts";

/** What Calculon says of one row. */
export interface CalculonResult {
  readonly seconds?: number;
  readonly refused?: string;
}

/** A row that both predict. */
export interface Pair {
  readonly row: Compared;
  readonly calculon: number;
}

/** Errors of both over the rows of one group. */
export interface Comparison {
  readonly id: string;
  readonly n: number;
  readonly calculon: Errors;
  readonly ours: Errors;
}

export interface Errors {
  readonly median: number;
  readonly mean: number;
  readonly p90: number;
}

/** Compares by group, and over all rows. */
export function compareByGroup(pairs: readonly Pair[]): Comparison[] {
  const groups = new Map<string, Pair[]>();
  for (const pair of pairs) {
    const list = groups.get(pair.row.group.id) ?? [];
    list.push(pair);
    groups.set(pair.row.group.id, list);
  }
  const lines = [...groups].map(([id, list]) => comparison(id, list));
  return lines.length > 1 ? [...lines, comparison("all", pairs)] : lines;
}

function comparison(id: string, pairs: readonly Pair[]): Comparison {
  return {
    id,
    n: pairs.length,
    calculon: errors(pairs.map(({ row, calculon }) => calculon / row.measured - 1)),
    ours: errors(pairs.map(({ row }) => row.predicted / row.measured - 1)),
  };
}

function errors(signed: readonly number[]): Errors {
  const sorted = signed.map(Math.abs).sort((a, b) => a - b);
  return {
    median: quantile(sorted, 0.5),
    mean: sorted.reduce((a, b) => a + b, 0) / sorted.length,
    p90: quantile(sorted, 0.9),
  };
}

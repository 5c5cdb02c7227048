/** Errors of iteration times source by source: whether a mechanism holds of more than the rows that it was found in. */
import { type Compared, type Outcome, isCompared } from "./outcome.ts";
import { quantile } from "./score.ts";

/** One source's rows in one group. */
export interface SourceErrors {
  readonly group: string;
  readonly source: string;
  readonly n: number;
  readonly median: number;
  readonly p90: number;
  readonly bias: number;
}

/** Sources with five rows and more of a group, in the order in which they first appear. */
export function errorsBySource(outcomes: readonly Outcome[]): SourceErrors[] {
  const groups = new Map<string, Compared[]>();
  for (const o of outcomes) {
    // A family ends with its source; only steps have families.
    if (!isCompared(o) || o.family === undefined || o.group.id.endsWith("-unsure")) continue;
    const key = `${o.group.id}/${o.family.slice(o.family.lastIndexOf("/") + 1)}`;
    const list = groups.get(key) ?? [];
    list.push(o);
    groups.set(key, list);
  }
  return [...groups]
    .filter(([, list]) => list.length >= 5)
    .map(([key, list]) => {
      const signed = list.map((c) => c.predicted / c.measured - 1);
      const sorted = signed.map(Math.abs).sort((a, b) => a - b);
      const [group = "", source = ""] = key.split("/");
      const bias = signed.reduce((a, b) => a + b, 0) / signed.length;
      return {
        group,
        source,
        n: list.length,
        median: quantile(sorted, 0.5),
        p90: quantile(sorted, 0.9),
        bias,
      };
    })
    .sort((a, b) => a.group.localeCompare(b.group));
}

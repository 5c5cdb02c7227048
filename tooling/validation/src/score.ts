/** Scores of a group: how far predictions are off, which way, and how many were skipped and why. */
import { type Compared, type Outcome, type Target, isCompared } from "./outcome.ts";

/** One line of accuracy.json. Errors are |ours / theirs − 1|, bias is the mean of ours / theirs − 1. */
export interface Score {
  readonly id: string;
  readonly source: string;
  readonly kind: string;
  readonly n: number;
  readonly skipped: number;
  readonly medianError: number | null;
  readonly p90Error: number | null;
  readonly meanError: number | null;
  readonly maxError: number | null;
  readonly bias: number | null;
  readonly target: Target | null;
  readonly met: boolean | null;
  /** Share of right labels where the measurement is a label (1 fits, 0 does not). */
  readonly accuracy?: number;
  /** Mean of the shares among those that fit and those that do not. */
  readonly balancedAccuracy?: number;
  /** Median rank correlation of layouts within a model and cluster, over families of five and more. */
  readonly spearman?: number;
  readonly reasons: Readonly<Record<string, number>>;
}

/** Scores outcomes group by group, in the order in which groups first appear. */
export function score(outcomes: readonly Outcome[]): Score[] {
  const groups = new Map<string, Outcome[]>();
  for (const o of outcomes) {
    const list = groups.get(o.group.id) ?? [];
    list.push(o);
    groups.set(o.group.id, list);
  }
  const scores = [...groups.values()].map(scoreGroup);
  const order = layoutScore(outcomes.filter((o) => !o.group.id.endsWith("-unsure")));
  return order === undefined ? scores : [...scores, order];
}

/** How layouts of one model on one cluster are ordered, over the families of all groups. */
function layoutScore(outcomes: readonly Outcome[]): Score | undefined {
  const compared = outcomes.filter(isCompared);
  const correlations = familyCorrelations(compared);
  if (correlations.length === 0) return undefined;
  const rank = quantile(correlations, 0.5);
  return {
    id: "layouts",
    source: "corpus",
    kind: "order of layouts",
    n: correlations.length,
    skipped: 0,
    ...none,
    spearman: rank,
    target: { spearman: 0.9 },
    met: rank >= 0.9,
    reasons: {},
  };
}

function scoreGroup(outcomes: readonly Outcome[]): Score {
  const { id, source, kind, target } = outcomes[0]!.group;
  const compared = outcomes.filter(isCompared);
  const reasons: Record<string, number> = {};
  for (const o of outcomes) {
    if (!isCompared(o)) reasons[o.skipped] = (reasons[o.skipped] ?? 0) + 1;
  }
  const base = { id, source, kind, n: compared.length, skipped: outcomes.length - compared.length };
  const measures = kind === "fits" ? labels(compared) : errors(compared);
  const values = { ...none, ...measures };
  return {
    ...base,
    ...values,
    target: target ?? null,
    met: target === undefined || compared.length === 0 ? null : meets(values, target),
    reasons,
  };
}

const none = { medianError: null, p90Error: null, meanError: null, maxError: null, bias: null };

/** Scores of a list of errors. */
type Measured = Record<"medianError" | "p90Error" | "meanError" | "maxError" | "bias", number> & {
  spearman?: number;
};

type Measures = Partial<
  Record<
    | "medianError"
    | "p90Error"
    | "meanError"
    | "maxError"
    | "bias"
    | "accuracy"
    | "balancedAccuracy"
    | "spearman",
    number | null
  >
>;

function errors(compared: readonly Compared[]): Partial<Measured> {
  if (compared.length === 0) return {};
  const signed = compared.map((c) => c.predicted / c.measured - 1);
  const sorted = signed.map(Math.abs).sort((a, b) => a - b);
  const rank = spearmanByFamily(compared);
  return {
    medianError: quantile(sorted, 0.5),
    p90Error: quantile(sorted, 0.9),
    meanError: mean(sorted),
    maxError: sorted.at(-1)!,
    bias: mean(signed),
    ...(rank === undefined ? {} : { spearman: rank }),
  };
}

function labels(compared: readonly Compared[]): { accuracy?: number; balancedAccuracy?: number } {
  if (compared.length === 0) return {};
  const right = (of: readonly Compared[]): number =>
    of.length === 0 ? Number.NaN : of.filter((c) => c.measured === c.predicted).length / of.length;
  const shares = [1, 0].map((label) => right(compared.filter((c) => c.measured === label)));
  return {
    accuracy: right(compared),
    balancedAccuracy: mean(shares.filter((x) => !Number.isNaN(x))),
  };
}

function meets(values: Measures, target: Target): boolean {
  const upper = ["medianError", "p90Error", "meanError", "maxError"] as const;
  // Where no family has five members there is no order to judge.
  const ranked = values.spearman === undefined ? [] : (["spearman"] as const);
  const lower = ["accuracy", "balancedAccuracy", ...ranked] as const;
  return (
    upper.every((k) => target[k] === undefined || (values[k] ?? Infinity) <= target[k]) &&
    lower.every((k) => target[k] === undefined || (values[k] ?? -Infinity) >= target[k])
  );
}

function mean(list: readonly number[]): number {
  return list.reduce((a, b) => a + b, 0) / list.length;
}

/** Quantile of a sorted list, linear between neighbours. */
export function quantile(sorted: readonly number[], q: number): number {
  const at = (sorted.length - 1) * q;
  const low = Math.floor(at);
  const high = Math.min(low + 1, sorted.length - 1);
  return sorted[low]! + (at - low) * (sorted[high]! - sorted[low]!);
}

/** Median of the families' rank correlations; undefined when no family has five members. */
function spearmanByFamily(compared: readonly Compared[]): number | undefined {
  const correlations = familyCorrelations(compared);
  return correlations.length === 0 ? undefined : quantile(correlations, 0.5);
}

/**
 * Rank correlation of each family of five measurements and more, smallest first: of its layouts, two at least, a layout
 * measured more than once, as by releases of a framework, at the median of its measurements.
 */
function familyCorrelations(compared: readonly Compared[]): number[] {
  const families = new Map<string, Compared[]>();
  for (const c of compared) {
    if (c.family === undefined) continue;
    const list = families.get(c.family) ?? [];
    list.push(c);
    families.set(c.family, list);
  }
  return [...families.values()]
    .filter((family) => family.length >= 5)
    .map(layoutsOf)
    .filter((layouts) => layouts.length > 1)
    .map((layouts) => spearman(medians(layouts, "measured"), medians(layouts, "predicted")))
    .sort((a, b) => a - b);
}

/** Measurements by layout; each is its own where its plan is not known. */
function layoutsOf(family: readonly Compared[]): readonly (readonly Compared[])[] {
  const layouts = new Map<string, Compared[]>();
  for (const c of family) {
    const layout = c.step === undefined ? c.id : JSON.stringify(c.step.plan);
    layouts.set(layout, [...(layouts.get(layout) ?? []), c]);
  }
  return [...layouts.values()];
}

function medians(
  layouts: readonly (readonly Compared[])[],
  of: "measured" | "predicted",
): readonly number[] {
  return layouts.map((layout) =>
    quantile(
      layout.map((c) => c[of]).sort((a, b) => a - b),
      0.5,
    ),
  );
}

/** Spearman's rank correlation; equal values share their mean rank. */
export function spearman(a: readonly number[], b: readonly number[]): number {
  const [x, y] = [ranksOf(a), ranksOf(b)];
  const [mx, my] = [mean(x), mean(y)];
  let covariance = 0;
  let vx = 0;
  let vy = 0;
  for (let i = 0; i < x.length; i++) {
    covariance += (x[i]! - mx) * (y[i]! - my);
    vx += (x[i]! - mx) ** 2;
    vy += (y[i]! - my) ** 2;
  }
  return vx === 0 || vy === 0 ? 0 : covariance / Math.sqrt(vx * vy);
}

function ranksOf(values: readonly number[]): number[] {
  const order = values.map((_, i) => i).sort((i, j) => values[i]! - values[j]!);
  const ranks = new Array<number>(values.length).fill(0);
  for (let i = 0; i < order.length;) {
    let j = i;
    while (j < order.length && values[order[j]!] === values[order[i]!]) j++;
    for (let k = i; k < j; k++) ranks[order[k]!] = (i + j - 1) / 2;
    i = j;
  }
  return ranks;
}

/** The scores as JSON, as a table, and as a page with the worst rows and every reason for a skip. */
import { formatPercent } from "@trireme/core";
import { type Coverage, coverage } from "./coverage.ts";
import { readFactors } from "./interval-factors.ts";
import { errorsBySource } from "./by-source.ts";
import { likelyCause } from "./likely-causes.ts";
import { type Compared, type Outcome, type Target, isCompared } from "./outcome.ts";
import type { Score } from "./score.ts";

/** accuracy.json. */
export function accuracyJson(scores: readonly Score[]): string {
  return `${JSON.stringify({ rows: scores }, (_, v: unknown) => (typeof v === "number" ? Number(v.toPrecision(6)) : v), 2)}\n`;
}

/** One line a score, for a terminal or Markdown. */
export function table(scores: readonly Score[]): string {
  const head = [
    "what",
    "kind",
    "n",
    "skipped",
    "median",
    "p90",
    "mean",
    "max",
    "bias",
    "other",
    "target",
    "met",
  ];
  const body = scores.map((s) => [
    s.id,
    s.kind,
    String(s.n),
    String(s.skipped),
    percent(s.medianError),
    percent(s.p90Error),
    percent(s.meanError),
    percent(s.maxError),
    signed(s.bias),
    other(s),
    s.target === null ? "" : targetText(s.target),
    s.met === null ? "" : s.met ? "yes" : "no",
  ]);
  return aligned(head, body);
}

function aligned(head: readonly string[], body: readonly (readonly string[])[]): string {
  const widths = head.map((h, i) => Math.max(h.length, ...body.map((row) => row[i]!.length)));
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((c, i) => c.padEnd(widths[i]!)).join(" | ")} |`;
  return [line(head), line(widths.map((w) => "-".repeat(w))), ...body.map(line)].join("\n");
}

function intervalTable(kinds: readonly Coverage[]): string {
  const head = ["kind", "n", "inside", "halves", "other sources", "half-width", "met"];
  const body = kinds.map((c) => [
    c.kind,
    String(c.n),
    percent(c.inside),
    c.halves.map((half) => (Number.isNaN(half) ? "none" : percent(half))).join(", "),
    percent(c.otherSources),
    percent(c.halfWidth),
    c.met === undefined ? "" : c.met ? "yes" : "no",
  ]);
  return aligned(head, body);
}

/** The factors that all rows show, as `interval.ts` has them. */
function factorTable(outcomes: readonly Outcome[]): string {
  const body = [...readFactors(outcomes.filter(isCompared))].flatMap(([kind, lists]) =>
    [...lists].map(([name, factors]) => [kind, name, factors.map((f) => f.toFixed(2)).join(", ")]),
  );
  return aligned(["kind", "architecture", "factors"], body);
}

function sourceTable(outcomes: readonly Outcome[]): string {
  const body = errorsBySource(outcomes).map((s) => [
    s.group,
    s.source,
    String(s.n),
    percent(s.median),
    percent(s.p90),
    signed(s.bias),
  ]);
  return aligned(["what", "source", "n", "median", "p90", "bias"], body);
}

function percent(x: number | null | undefined): string {
  return x === null || x === undefined ? "" : formatPercent(x);
}

function signed(x: number | null): string {
  return x === null ? "" : `${x > 0 ? "+" : ""}${formatPercent(x)}`;
}

function other(s: Score): string {
  const parts: string[] = [];
  if (s.accuracy !== undefined) parts.push(`right ${percent(s.accuracy)}`);
  if (s.balancedAccuracy !== undefined) parts.push(`balanced ${percent(s.balancedAccuracy)}`);
  if (s.spearman !== undefined) parts.push(`rank ${s.spearman.toFixed(2)}`);
  return parts.join(", ");
}

const labels: readonly (readonly [keyof Target, string])[] = [
  ["medianError", "median ≤"],
  ["p90Error", "p90 ≤"],
  ["meanError", "mean ≤"],
  ["maxError", "max ≤"],
  ["accuracy", "right ≥"],
  ["balancedAccuracy", "balanced ≥"],
  ["spearman", "rank ≥"],
];

function targetText(target: Target): string {
  const parts: string[] = [];
  for (const [key, label] of labels) {
    const value = target[key];
    if (value !== undefined)
      parts.push(`${label} ${key === "spearman" ? value : formatPercent(value)}`);
  }
  return parts.join(", ");
}

/** The page of docs/accuracy. */
export function report(scores: readonly Score[], outcomes: readonly Outcome[]): string {
  return `${[
    "# Accuracy of the cost model",
    "",
    "Written by `pnpm validate`; do not edit. Each line compares the estimate with published measurements: error is |ours / theirs − 1|, bias the mean of ours / theirs − 1. The model has a few numbers per generation of accelerators and none per source, model or plan (`characteristics.ts` of cost-model says where each comes from); how a source's framework computes is described in `tooling/validation/src/corpus-plan.ts`, what Megatron-Bridge's recipes decide for experts in `bridge-recipes.ts`, and what NVIDIA's scripts say where its tables do not in `dgxc-scripts.ts`. Of pipelines that were profiled, `schedule-bubble` compares closed forms with the source's own count and `schedule-step` with what was measured, optimizer and start of a step included; the latter is not estimated. Lines ending in `-unsure` hold the rows that are not both of high confidence and complete. Sources and licences: [data](../../tooling/validation/data/README.md).",
    "",
    table(scores),
    "",
    "![Predicted against measured iteration times](scatter.svg)",
    "",
    "## Intervals",
    "",
    "A prediction's interval is to hold four in five measurements. Its factors (`interval.ts` of cost-model) are the tenth and the ninetieth per cent of measured over predicted by kind, and by architecture where it has 50 rows. `inside` judges each half of the rows by factors read off the other half only, so that no row has a part in what it is judged by; the halves by themselves are noisy (of 15 rows that are inside with 80 % each, the share found is within 10 % two times in three). Rows of one source lie in both halves; `other sources` judges the rows of each source by the factors of all others, which is what a new source may expect. Lines below a kind are its parts. Met: 80 ± 8 % inside, and a median half-width of 25 % at most.",
    "",
    intervalTable(coverage(outcomes)),
    "",
    "Read off all rows:",
    "",
    factorTable(outcomes),
    "",
    "## By source",
    "",
    "Iteration times source by source, where a source has five rows and more of a group. What `characteristics.ts` holds of training was set on dense rows alone, so that no number was set on rows with experts; which mechanisms there are was decided with all rows in sight.",
    "",
    sourceTable(outcomes),
    ...scores.flatMap((s) => section(s, outcomes)),
  ].join("\n")}\n`;
}

function section(s: Score, outcomes: readonly Outcome[]): string[] {
  const compared = outcomes.filter((o): o is Compared => o.group.id === s.id && isCompared(o));
  const reasons = Object.entries(s.reasons).sort((a, b) => b[1] - a[1]);
  const every = compared.some((c) => c.group.everyRow === true);
  const whole = every || (compared.length <= 12 && s.target !== null);
  const error = (c: Compared): number => Math.abs(c.predicted / c.measured - 1);
  const shown = whole ? compared : [...compared].sort((a, b) => error(b) - error(a)).slice(0, 8);
  const lines = ["", `## ${s.id}`, "", `${s.source}; ${s.kind}.`];
  if (s.kind !== "fits" && shown.length > 0) {
    lines.push(
      "",
      whole ? "Every row:" : "Worst rows:",
      "",
      "| row | theirs | ours | error | of which | likely cause |",
      "| --- | --- | --- | --- | --- | --- |",
    );
    for (const c of shown) {
      lines.push(
        `| ${c.id} | ${short(c.measured)} | ${short(c.predicted)} | ${signed(c.predicted / c.measured - 1)} | ${c.detail ?? ""} | ${whole ? "" : likelyCause(c.id)} |`,
      );
    }
  }
  if (reasons.length > 0) {
    lines.push("", "Skipped:", "", ...reasons.map(([reason, count]) => `- ${count} × ${reason}`));
  }
  return lines;
}

function short(x: number): string {
  return Number(x.toPrecision(4)).toString();
}

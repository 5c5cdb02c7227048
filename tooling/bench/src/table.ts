/** Outcomes as a table for people: the value against its target and its peer. */
import { reaches } from "./figure.ts";
import type { Outcome } from "./run-benchmark.ts";

/** One row per outcome, columns aligned; what failed or was skipped says so in its row. */
export function printTable(outcomes: readonly Outcome[]): string {
  const header = ["figure", "value", "target", "peer", "ratio", ""];
  const rows = outcomes.map((outcome) => {
    if (outcome.kind !== "figure") return [outcome.id, outcome.kind, "", "", "", outcome.note];
    const { figure, note } = outcome;
    const { id, value, unit, target, better, peerValue, ratio } = figure;
    const met = reaches(figure);
    const verdict = met === undefined ? "" : met ? " reached" : " MISSED";
    return [
      id,
      `${number(value)} ${unit}`,
      target === null ? "" : `${better === "lower" ? "≤" : "≥"} ${number(target)}${verdict}`,
      peerValue === null ? "" : number(peerValue),
      ratio === null ? "" : number(ratio),
      note,
    ];
  });
  const widths = header.map((_, column) =>
    Math.max(...[header, ...rows].map((row) => row[column]!.length)),
  );
  return [header, ...rows]
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column]!))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** Four significant digits, thousands kept apart. */
function number(value: number): string {
  const rounded = Number(value.toPrecision(4));
  const size = Math.abs(rounded);
  if (rounded !== 0 && (size < 1e-3 || size >= 1e12)) return rounded.toExponential();
  return rounded.toLocaleString("en-US", { maximumSignificantDigits: 4 });
}

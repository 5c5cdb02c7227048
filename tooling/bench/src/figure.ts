/** A figure: one measured number with its target and its peer, as one line of JSON. */

/** Which way is good. */
export type Better = "lower" | "higher";

/** A line of `docs/benchmarks/latest.jsonl`; the fields stand in this order. */
export interface Figure {
  /** `<package>/<name>`, stable. */
  readonly id: string;
  readonly package: string;
  readonly what: string;
  readonly value: number;
  readonly unit: string;
  readonly better: Better;
  /** In `unit`; null where there is none. */
  readonly target: number | null;
  /** Whom we compare with; null where nobody, or where it is not installed here. */
  readonly peer: string | null;
  /** Its figure, in `unit`. */
  readonly peerValue: number | null;
  /** value / peerValue. */
  readonly ratio: number | null;
  /** ISO 8601, UTC, to the second. */
  readonly date: string;
  /** The machine and the runtime. */
  readonly cpu: string;
}

/** Whether the figure reaches its target; undefined where it has none. */
export function reaches(figure: Figure): boolean | undefined {
  const { value, target, better } = figure;
  if (target === null) return undefined;
  return better === "lower" ? value <= target : value >= target;
}

/**
 * The record after a run: lines of figures that were measured again are replaced, all others kept,
 * in order of id, so that a new figure changes one line of the file.
 */
export function mergeFigures(recorded: string, measured: readonly Figure[]): string {
  const lines = new Map<string, string>();
  for (const [i, line] of recorded.split("\n").entries()) {
    if (line.trim() === "") continue;
    lines.set(idOf(line, i + 1), line);
  }
  for (const figure of measured) lines.set(figure.id, JSON.stringify(figure));
  const sorted = [...lines].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return sorted.map(([, line]) => `${line}\n`).join("");
}

function idOf(line: string, number: number): string {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (cause) {
    throw new Error(`line ${number} of the recorded figures is no JSON; mend or remove it`, {
      cause,
    });
  }
  if (
    typeof value === "object" &&
    value !== null &&
    "id" in value &&
    typeof value.id === "string"
  ) {
    return value.id;
  }
  throw new Error(`line ${number} of the recorded figures has no id; mend or remove it`);
}

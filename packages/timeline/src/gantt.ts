/** A timeline as text: one row a rank, one letter a slice of time. For terminals and documents. */
import { TriremeError, formatSeconds } from "@trireme/core";
import { type SpanKind, categoryOf, spanKinds } from "./kind.ts";
import type { Timeline } from "./timeline.ts";

const letters: Readonly<Record<SpanKind, string>> = {
  forward: "F",
  backward: "B",
  "input-gradient": "I",
  "weight-gradient": "W",
  recompute: "R",
  send: ">",
  receive: "<",
  "all-reduce": "+",
  "reduce-scatter": "-",
  "all-gather": "=",
  "all-to-all": "x",
  broadcast: "*",
  barrier: "|",
  optimizer: "O",
  load: "L",
  checkpoint: "C",
  evaluate: "E",
  idle: ".",
  other: "?",
};

/** What wins a slice of time: computing hides the rest, as it does in statistics. */
const weight = { compute: 3, communication: 2, other: 1, idle: 0 } as const;

/**
 * Draws each rank as one row of `width` letters (default 80): the kind that fills most of a slice,
 * computing before communication before the rest, "." where nothing ran for most of it. A scale and
 * a legend of the letters used follow. Ranks without spans are left out.
 */
export function gantt(t: Timeline, options: { readonly width?: number } = {}): string {
  const { width = 80 } = options;
  if (!Number.isInteger(width) || width < 1) {
    throw new TriremeError("GANTT", `width ${width}: give an integer of at least 1`);
  }
  if (t.length === 0) return "no spans\n";
  const start = t.start.reduce((a, b) => Math.min(a, b), Infinity);
  const makespan = t.end.reduce((a, b) => Math.max(a, b), -Infinity) - start;
  const slice = makespan / width || 1;
  const kinds = spanKinds.length;
  const time = new Map<number, Float64Array>();
  for (let i = 0; i < t.length; i++) {
    let row = time.get(t.rank[i]!);
    if (row === undefined) time.set(t.rank[i]!, (row = new Float64Array(width * kinds)));
    const from = (t.start[i]! - start) / slice;
    const to = (t.end[i]! - start) / slice;
    for (let x = Math.min(width - 1, Math.floor(from)); x < Math.min(width, to); x++) {
      row[x * kinds + t.kind[i]!]! += Math.min(x + 1, to) - Math.max(x, from);
    }
  }
  const ranks = [...time.keys()].sort((a, b) => a - b);
  const margin = String(ranks.at(-1)).length;
  const seen = new Set<number>();
  const lines = ranks.map((rank) => {
    const row = time.get(rank)!;
    let text = "";
    for (let x = 0; x < width; x++) {
      const kind = winner(row, x * kinds);
      if (kind >= 0) seen.add(kind);
      text += kind < 0 ? "." : letters[spanKinds[kind]!];
    }
    return `${String(rank).padStart(margin)} ${text}`;
  });
  const label = formatSeconds(makespan);
  const scale = `${" ".repeat(margin)} 0 ${label.padStart(width - 2)}`;
  const legend = [...seen]
    .sort((a, b) => a - b)
    .filter((kind) => spanKinds[kind] !== "idle")
    .map((kind) => `${letters[spanKinds[kind]!]} ${spanKinds[kind]}`);
  return `${lines.join("\n")}\n${scale}\n${[...legend, ". idle"].join("  ")}\n`;
}

/** The kind to draw in a slice: the longest of the category that fills most; -1 when most is idle. */
function winner(row: Float64Array, at: number): number {
  const filled = [0, 0, 0, 0];
  spanKinds.forEach((kind, code) => {
    filled[weight[categoryOf(kind)]]! += row[at + code]!;
  });
  // A hair of tolerance: a span that ends in the middle of a slice fills half of it, not 0.4999….
  if (filled[1]! + filled[2]! + filled[3]! < 0.5 - 1e-9) return -1;
  const most = Math.max(filled[1]!, filled[2]!, filled[3]!);
  const category = filled.lastIndexOf(most);
  let best = -1;
  spanKinds.forEach((kind, code) => {
    if (weight[categoryOf(kind)] !== category || !(row[at + code]! > 0)) return;
    if (best < 0 || row[at + code]! > row[at + best]!) best = code;
  });
  return best;
}

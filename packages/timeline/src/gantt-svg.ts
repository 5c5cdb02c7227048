/** A timeline as SVG: one row a lane of a rank, one box a span, for documents and pages. */
import { TriremeError, formatBytes, formatSeconds } from "@trireme/core";
import { type SpanKind, lanes, spanKinds } from "./kind.ts";
import { laneOrder } from "./span-order.ts";
import type { Timeline } from "./timeline.ts";

/** How the picture is drawn. */
export interface GanttSvgOptions {
  /** Pixels of the whole picture; 960 when left out. */
  readonly width?: number;
  /** Pixels of a row; 18 when left out. */
  readonly rowHeight?: number;
  /** A line above the picture. */
  readonly title?: string;
}

/** Of one hue a family: forwards blue, backwards green, updates violet, communication orange. */
const colours: Readonly<Record<SpanKind, string>> = {
  forward: "#4c78a8",
  backward: "#54a24b",
  "input-gradient": "#88d27a",
  "weight-gradient": "#3a7d34",
  recompute: "#9ecae9",
  send: "#f58518",
  receive: "#ffbf79",
  "all-reduce": "#e45756",
  "reduce-scatter": "#ff9d98",
  "all-gather": "#d67195",
  "all-to-all": "#b279a2",
  broadcast: "#eeca3b",
  barrier: "#b79a20",
  optimizer: "#7a5195",
  load: "#9d755d",
  checkpoint: "#d8b5a5",
  evaluate: "#439894",
  idle: "#eeeeee",
  other: "#bab0ac",
};

const margin = { left: 110, right: 16, top: 8, title: 22, axis: 24, legend: 20 };

/**
 * The picture as one SVG element with fixed size. Boxes carry action, times and bytes as a tooltip,
 * and the action as text where it fits; boxes below a third of a pixel that touch are drawn as one.
 * @throws TriremeError `GANTT` when a size leaves no room.
 */
export function ganttSvg(t: Timeline, options: GanttSvgOptions = {}): string {
  const { width = 960, rowHeight = 18, title } = options;
  const room = width - margin.left - margin.right;
  if (!(room >= 1 && rowHeight >= 2 && width < Infinity && rowHeight < Infinity)) {
    throw new TriremeError(
      "GANTT",
      `width ${width}, row height ${rowHeight}: give at least ${margin.left + margin.right + 1} and 2`,
    );
  }
  const start = t.start.reduce((a, b) => Math.min(a, b), Infinity);
  const makespan = t.length === 0 ? 0 : t.end.reduce((a, b) => Math.max(a, b), -Infinity) - start;
  const scale = makespan > 0 ? room / makespan : 0;
  const x = (time: number): number => margin.left + (time - start) * scale;
  const { order, at } = laneOrder(t, (a, b) => t.start[a]! - t.start[b]! || t.end[b]! - t.end[a]!);
  const out: string[] = [];
  let y = margin.top + (title === undefined ? 0 : margin.title);
  const top = y;
  for (let lane = 0; lane + 1 < at.length; lane++) {
    const row = order.subarray(at[lane], at[lane + 1]);
    const name = `rank ${t.rank[row[0]!]} ${lanes[t.lane[row[0]!]!]}`;
    out.push(text(margin.left - 6, y + rowHeight * 0.7, name, "end"));
    boxes(t, row, x, y, rowHeight, out);
    y += rowHeight + 2;
  }
  out.push(...axis(makespan, room, top, y));
  y += margin.axis;
  const seen = spanKinds.filter((_, code) => t.kind.includes(code));
  const perRow = Math.max(1, Math.floor((width - margin.left) / 120));
  seen.forEach((kind, i) => {
    const left = margin.left + (i % perRow) * 120;
    const line = y + Math.floor(i / perRow) * margin.legend;
    out.push(
      `<rect x="${left}" y="${line}" width="12" height="12" fill="${colours[kind]}"/>`,
      text(left + 17, line + 10, kind, "start"),
    );
  });
  y += Math.ceil(seen.length / perRow) * margin.legend + 4;
  const heading =
    title === undefined ? "" : text(margin.left, margin.top + 12, escape(title), "start");
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${round(y)}" viewBox="0 0 ${width} ${round(y)}" font-family="sans-serif" font-size="11">\n<rect width="100%" height="100%" fill="#ffffff"/>\n${heading}${out.join("\n")}\n</svg>\n`;
}

function boxes(
  t: Timeline,
  row: Uint32Array,
  x: (time: number) => number,
  y: number,
  height: number,
  out: string[],
): void {
  // Ends of the boxes a span lies in: it is drawn lower, so that both are seen.
  const outer: number[] = [];
  let pending: { left: number; right: number; kind: number } | undefined;
  const flush = (): void => {
    if (pending !== undefined) {
      out.push(rect(pending.left, y, pending.right - pending.left, height, pending.kind, ""));
    }
    pending = undefined;
  };
  for (const i of row) {
    const [left, right] = [x(t.start[i]!), x(t.end[i]!)];
    const kind = t.kind[i]!;
    if (right - left < 1 / 3) {
      if (pending?.kind === kind && left - pending.right < 1 / 3) {
        pending.right = Math.max(pending.right, right);
      } else {
        flush();
        pending = { left, right: Math.max(right, left + 0.1), kind };
      }
      continue;
    }
    while (outer.length > 0 && outer[outer.length - 1]! <= t.start[i]!) outer.pop();
    const inset = Math.min(height / 2, outer.length * 3);
    outer.push(t.end[i]!);
    const action = escape(t.actions[t.action[i]!]!);
    const size = t.bytes[i]! > 0 ? `, ${formatBytes(t.bytes[i]!)}` : "";
    const tip = `<title>${action}: ${spanKinds[kind]}, ${formatSeconds(t.start[i]!)} + ${formatSeconds(t.end[i]! - t.start[i]!)}${size}</title>`;
    out.push(rect(left, y + inset, right - left, height - inset, kind, tip));
    // Letters of this size are about six pixels wide.
    if (right - left > t.actions[t.action[i]!]!.length * 6.5 + 4 && height - inset > 11) {
      out.push(text((left + right) / 2, y + inset + (height - inset) / 2 + 4, action, "middle"));
    }
  }
  flush();
}

/** Ticks at round times: 1, 2 or 5 times a power of ten apart. */
function axis(makespan: number, room: number, top: number, bottom: number): string[] {
  const out: string[] = [];
  if (!(makespan > 0)) return out;
  const rough = makespan / Math.max(1, Math.floor(room / 100));
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough * (1 - 1e-9)) ?? rough;
  for (let k = 0; k * step <= makespan * (1 + 1e-9); k++) {
    const at = round(margin.left + (k * step * room) / makespan);
    out.push(
      `<line x1="${at}" y1="${round(top)}" x2="${at}" y2="${round(bottom)}" stroke="#00000022"/>`,
      text(at, bottom + 12, formatSeconds(k * step), "middle"),
    );
  }
  return out;
}

function rect(
  x: number,
  y: number,
  width: number,
  height: number,
  kind: number,
  inside: string,
): string {
  const shape = `x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" fill="${colours[spanKinds[kind]!]}"`;
  return inside === "" ? `<rect ${shape}/>` : `<rect ${shape}>${inside}</rect>`;
}

function text(x: number, y: number, content: string, anchor: "start" | "middle" | "end"): string {
  return `<text x="${round(x)}" y="${round(y)}" text-anchor="${anchor}">${content}</text>`;
}

/** Hundredths of a pixel are enough. */
function round(n: number): number {
  return Math.round(n * 100) / 100;
}

function escape(s: string): string {
  return (
    s
      .replaceAll("&", "&amp;")
      .replaceAll("<", "&lt;")
      .replaceAll(">", "&gt;")
      .replaceAll('"', "&quot;")
      // Control characters are not allowed in XML at all.
      .replaceAll(/[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\u{10000}-\u{10ffff}]/gu, "\ufffd")
  );
}

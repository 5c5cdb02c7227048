/** A replayed schedule as a picture: text for a terminal, SVG for a page. One row for each rank. */
import { TriremeError, formatSeconds } from "@trireme/core";
import { type ActionKind, actionKinds, kindCode, printAction } from "./action.ts";
import type { Replay } from "./replay.ts";
import { type Schedule, actionAt } from "./schedule.ts";

export interface TextPictureOptions {
  /** Columns for the time axis; 100 when left out. */
  readonly width?: number;
}

/**
 * A grid of characters. Forwards are the last digit of their microbatch, backwards (B and I) the
 * letters a to j in its place, W is `w`, an overlapped pair `x`, idle time `.`; each column shows what
 * runs at its middle.
 */
export function textPicture(s: Schedule, r: Replay, o: TextPictureOptions = {}): string {
  const width = o.width ?? 100;
  if (!Number.isInteger(width) || width < 1 || width > 10_000) {
    throw new TriremeError("PICTURE", `width = ${width} is not an integer in 1..10000`);
  }
  const label = String(s.ranks - 1).length;
  const lines: string[] = [];
  for (let rank = 0; rank < s.ranks; rank++) {
    const cells = new Array<string>(width).fill(".");
    for (let i = s.offsets[rank]!; i < s.offsets[rank + 1]!; i++) {
      if (s.kind[i]! > kindCode.B || r.makespan === 0) continue;
      const from = Math.ceil((r.starts[i]! / r.makespan) * width - 0.5);
      for (
        let c = Math.max(0, from);
        c < width && (c + 0.5) / width < r.ends[i]! / r.makespan;
        c++
      ) {
        cells[c] = letterOf(s, i);
      }
    }
    lines.push(`${String(rank).padStart(label)} ${cells.join("").replace(/\.+$/, "")}`);
  }
  return lines.join("\n");
}

function letterOf(s: Schedule, i: number): string {
  if (s.overlap[i] !== 0) return "x";
  const digit = s.microbatch[i]! % 10;
  switch (s.kind[i]!) {
    case kindCode.F:
      return String(digit);
    case kindCode.W:
      return "w";
    default:
      return "abcdefghij"[digit]!;
  }
}

export interface SvgPictureOptions {
  /** Width of the time axis in pixels; 1000 when left out. */
  readonly width?: number;
  /** Height of a rank's row in pixels; 22 when left out. */
  readonly rowHeight?: number;
}

/** Fill by kind; the second chunk and later are drawn lighter. */
const fills: Readonly<Partial<Record<ActionKind, string>>> = {
  F: "#4477aa",
  I: "#228833",
  W: "#ccbb44",
  B: "#66a182",
};

/**
 * An SVG document: a rectangle for each compute action with its microbatch where it fits, its text and
 * times as a tooltip, and a time axis.
 */
export function svgPicture(s: Schedule, r: Replay, o: SvgPictureOptions = {}): string {
  const { width = 1000, rowHeight = 22 } = o;
  if (!(width > 0 && width < 1e6 && rowHeight > 0 && rowHeight < 1e4)) {
    throw new TriremeError(
      "PICTURE",
      `picture of ${width} x ${rowHeight} per row; both are above 0`,
    );
  }
  const left = 60;
  const bottom = 24;
  const height = s.ranks * rowHeight + bottom;
  const x = (time: number): number => left + (r.makespan === 0 ? 0 : (time / r.makespan) * width);
  const round = (n: number): string => String(Math.round(n * 100) / 100);
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${round(left + width + 10)} ${round(height)}" font-family="sans-serif" font-size="10" role="img">`,
    `<title>${escaped(s.name)}: ${s.ranks} ranks, ${s.microbatches} microbatches, ${escaped(formatSeconds(r.makespan))}</title>`,
  ];
  for (let rank = 0; rank < s.ranks; rank++) {
    const y = rank * rowHeight;
    parts.push(
      `<text x="4" y="${round(y + rowHeight / 2 + 3)}">rank ${rank}</text>`,
      `<rect x="${left}" y="${round(y + 1)}" width="${round(width)}" height="${round(rowHeight - 2)}" fill="#eeeeee"/>`,
    );
    for (let i = s.offsets[rank]!; i < s.offsets[rank + 1]!; i++) {
      const fill = fills[actionKinds[s.kind[i]!]!];
      if (fill === undefined) continue;
      // The halves of an overlapped pair share the height.
      const half = s.overlap[i]!;
      const top = y + 1 + (half === 2 ? (rowHeight - 2) / 2 : 0);
      const tall = (rowHeight - 2) / (half === 0 ? 1 : 2);
      const [from, to] = [x(r.starts[i]!), x(r.ends[i]!)];
      const lighter = s.stage[i]! >= s.ranks ? ' fill-opacity="0.65"' : "";
      const tip = `${printAction(actionAt(s, i))}: ${formatSeconds(r.starts[i]!)} to ${formatSeconds(r.ends[i]!)}`;
      parts.push(
        `<g><title>${tip}</title><rect x="${round(from)}" y="${round(top)}" width="${round(to - from)}" height="${round(tall)}" fill="${fill}"${lighter} stroke="#ffffff" stroke-width="0.5"/>` +
          (to - from > 14 && tall > 9
            ? `<text x="${round((from + to) / 2)}" y="${round(top + tall / 2 + 3)}" text-anchor="middle" fill="#ffffff">${s.microbatch[i]}</text>`
            : "") +
          "</g>",
      );
    }
  }
  const axis = s.ranks * rowHeight;
  for (let tick = 0; tick <= 4; tick++) {
    const time = (tick / 4) * r.makespan;
    parts.push(
      `<line x1="${round(x(time))}" y1="${round(axis)}" x2="${round(x(time))}" y2="${round(axis + 4)}" stroke="#333333"/>`,
      `<text x="${round(x(time))}" y="${round(axis + 16)}" text-anchor="middle">${escaped(formatSeconds(time))}</text>`,
    );
  }
  parts.push("</svg>", "");
  return parts.join("\n");
}

function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll('"', "&quot;");
}

/** A scatter plot of predicted against measured iteration times, on logarithmic axes, as SVG. */
import { type Compared, type Outcome, isCompared } from "./outcome.ts";

const size = 640;
const margin = 56;
const colours = [
  "#1b6ca8",
  "#c8553d",
  "#3a7d44",
  "#8f5fbf",
  "#b8860b",
  "#4a4e69",
  "#0f8b8d",
  "#d1495b",
];

/** The plot of every iteration time, one colour a group; the line is equality, the band ±20 %. */
export function scatter(outcomes: readonly Outcome[]): string {
  const points = outcomes.filter(
    (o): o is Compared =>
      isCompared(o) && o.group.kind === "iteration time" && o.measured > 0 && o.predicted > 0,
  );
  const values = points.flatMap((p) => [p.measured, p.predicted]);
  const low = Math.floor(Math.log10(Math.min(1, ...values)));
  const high = Math.ceil(Math.log10(Math.max(10, ...values)));
  const span = size - 2 * margin;
  const x = (v: number): number => margin + (span * (Math.log10(v) - low)) / (high - low);
  const y = (v: number): number => size - x(v);
  const groups = [...new Set(points.map((p) => p.group.id))];
  const at = (a: number, b: number): string => `${x(a).toFixed(1)},${y(b).toFixed(1)}`;
  const [min, max] = [10 ** low, 10 ** high];
  const ticks = Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i));
  return `${[
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size} ${size}" font-family="sans-serif" font-size="11">`,
    `<title>Predicted against measured iteration times, ${points.length} rows</title>`,
    `<rect width="${size}" height="${size}" fill="#fff"/>`,
    `<polygon points="${at(min, 0.8 * min)} ${at(max, 0.8 * max)} ${at(max, 1.2 * max)} ${at(min, 1.2 * min)}" fill="#eee"/>`,
    `<polyline points="${at(min, min)} ${at(max, max)}" stroke="#888" fill="none"/>`,
    ...ticks.flatMap((t) => tick(t, x(t), y(t))),
    `<text x="${size / 2}" y="${size - 12}" text-anchor="middle">measured, seconds</text>`,
    `<text x="16" y="${size / 2}" text-anchor="middle" transform="rotate(-90 16 ${size / 2})">predicted, seconds</text>`,
    ...points.map((p) =>
      dot(p, x(p.measured), y(p.predicted), colours[groups.indexOf(p.group.id) % colours.length]!),
    ),
    ...groups.map((g, i) => legend(g, i)),
    "</svg>",
  ].join("\n")}\n`;
}

function tick(value: number, x: number, y: number): string[] {
  const end = size - margin;
  return [
    `<line x1="${x.toFixed(1)}" x2="${x.toFixed(1)}" y1="${margin}" y2="${end}" stroke="#ddd"/>`,
    `<line x1="${margin}" x2="${end}" y1="${y.toFixed(1)}" y2="${y.toFixed(1)}" stroke="#ddd"/>`,
    `<text x="${x.toFixed(1)}" y="${end + 16}" text-anchor="middle">${value}</text>`,
    `<text x="${margin - 6}" y="${(y + 4).toFixed(1)}" text-anchor="end">${value}</text>`,
  ];
}

function dot(p: Compared, x: number, y: number, colour: string): string {
  return `<circle cx="${x.toFixed(1)}" cy="${y.toFixed(1)}" r="2.2" fill="${colour}" fill-opacity="0.55"/>`;
}

function legend(group: string, i: number): string {
  const y = margin + 8 + 15 * i;
  return `<circle cx="${margin + 12}" cy="${y}" r="4" fill="${colours[i % colours.length]!}"/><text x="${margin + 22}" y="${y + 4}">${group}</text>`;
}

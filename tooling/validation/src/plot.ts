/** A scatter plot of predicted against measured iteration times, on logarithmic axes, as SVG. */
import { type Compared, type Outcome, isCompared } from "./outcome.ts";

const size = 640;
const margin = 56;
/** Outlines around the origin, drawn with the same ink: circle, square, triangle, diamond, cross. */
const marks = [
  "M-2.2,0a2.2,2.2 0 1,0 4.4,0a2.2,2.2 0 1,0 -4.4,0Z",
  "M-2,-2H2V2H-2Z",
  "M0,-2.6L2.5,1.8H-2.5Z",
  "M0,-2.8L2.8,0L0,2.8L-2.8,0Z",
  "M-2.4,-0.8H-0.8V-2.4H0.8V-0.8H2.4V0.8H0.8V2.4H-0.8V0.8H-2.4Z",
] as const;

/** How a series is drawn: no two of them share their colour, nor neighbours their mark. */
interface Style {
  readonly colour: string;
  readonly mark: string;
}

/** The style of series `i` of `count`: hues around the wheel, every other one darker. */
function styleOf(i: number, count: number): Style {
  const hue = Math.round((360 * i) / count);
  return { colour: `hsl(${hue} 70% ${i % 2 === 0 ? 42 : 28}%)`, mark: marks[i % marks.length]! };
}

/** The plot of every iteration time, a colour and a mark a group; the line is equality, the band ±20 %. */
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
      dot(x(p.measured), y(p.predicted), styleOf(groups.indexOf(p.group.id), groups.length)),
    ),
    ...groups.map((g, i) => legend(g, i, styleOf(i, groups.length))),
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

function dot(x: number, y: number, { colour, mark }: Style): string {
  return `<path transform="translate(${x.toFixed(1)} ${y.toFixed(1)})" d="${mark}" fill="${colour}" fill-opacity="0.6"/>`;
}

function legend(group: string, i: number, { colour, mark }: Style): string {
  const y = margin + 8 + 15 * i;
  return `<path transform="translate(${margin + 12} ${y}) scale(1.8)" d="${mark}" fill="${colour}"/><text x="${margin + 22}" y="${y + 4}">${group}</text>`;
}

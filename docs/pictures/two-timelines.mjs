// Draws the predicted and the measured step of a run folder, one above the other on one scale:
//
//   node docs/pictures/two-timelines.mjs runs/sotu-gpt-1 > docs/pictures/two-timelines.svg
import { readFileSync } from "node:fs";
import { join } from "node:path";

const colors = {
  forward: "#4c8dae",
  backward: "#c9804a",
  "input-gradient": "#c9804a",
  "weight-gradient": "#b5603a",
  "all-reduce": "#8a78b0",
  optimizer: "#6a9a64",
};
const names = {
  forward: "forward",
  backward: "backward",
  "all-reduce": "all-reduce",
  optimizer: "update",
};
const [width, left, row, gap] = [860, 92, 22, 4];

/** Spans of one step, in milliseconds from its start. */
function stepOf(path, wanted) {
  const { traceEvents } = JSON.parse(readFileSync(path, "utf8"));
  const spans = traceEvents.filter((event) => event.ph === "X" && event.cat in colors);
  const steps = Map.groupBy ? Map.groupBy(spans, (s) => s.args.step) : groupByStep(spans);
  const all = [...steps.values()].map((list) => {
    const start = Math.min(...list.map((s) => s.ts));
    return list.map((s) => ({
      rank: s.pid,
      kind: s.cat,
      start: (s.ts - start) / 1e3,
      time: s.dur / 1e3,
    }));
  });
  const length = (list) => Math.max(...list.map((s) => s.start + s.time));
  const miss = (list) => Math.abs(length(list) - wanted);
  return all.reduce((best, list) => (miss(list) < miss(best) ? list : best));
}

function groupByStep(spans) {
  const steps = new Map();
  for (const span of spans) {
    const list = steps.get(span.args.step) ?? [];
    list.push(span);
    steps.set(span.args.step, list);
  }
  return steps;
}

function medianStep(path) {
  const lines = readFileSync(path, "utf8")
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  const times = lines.filter((line) => line.kind === "step").map((line) => line.seconds * 1e3);
  return times.sort((a, b) => a - b)[times.length >> 1];
}

const folder = process.argv[2];
const median = medianStep(join(folder, "metrics.jsonl"));
const panels = [
  { title: "predicted", spans: stepOf(join(folder, "prediction.json"), median) },
  { title: "measured", spans: stepOf(join(folder, "trace.json"), median) },
];
const end = Math.max(...panels.flatMap(({ spans }) => spans.map((s) => s.start + s.time)));
const x = (ms) => left + (ms / end) * (width - left - 8);
const out = [];
let y = 30;
for (const { title, spans } of panels) {
  const ranks = [...new Set(spans.map((s) => s.rank))].sort((a, b) => a - b);
  out.push(`<text x="0" y="${y - 8}" class="title">${title}</text>`);
  for (const [i, rank] of ranks.entries()) {
    const top = y + i * (row + gap);
    out.push(`<text x="${left - 10}" y="${top + 15}" text-anchor="end">rank ${rank}</text>`);
    out.push(
      `<rect x="${left}" y="${top}" width="${width - left - 8}" height="${row}" class="idle"/>`,
    );
    for (const s of spans.filter((span) => span.rank === rank)) {
      const w = Math.max(0.6, x(s.start + s.time) - x(s.start) - 0.6);
      out.push(
        `<rect x="${x(s.start).toFixed(1)}" y="${top}" width="${w.toFixed(1)}" height="${row}" rx="1.5" fill="${colors[s.kind]}"/>`,
      );
    }
  }
  y += ranks.length * (row + gap) + 34;
}
y -= 24;
const tick = end > 80 ? 20 : end > 40 ? 10 : 5;
for (let ms = 0; ms <= end; ms += tick) {
  out.push(
    `<text x="${x(ms).toFixed(1)}" y="${y + 8}" text-anchor="middle">${ms}${ms === 0 ? " ms" : ""}</text>`,
  );
}
let at = left;
for (const [kind, name] of Object.entries(names)) {
  out.push(
    `<rect x="${at}" y="${y + 24}" width="12" height="12" rx="1.5" fill="${colors[kind]}"/>`,
  );
  out.push(`<text x="${at + 18}" y="${y + 34}">${name}</text>`);
  at += 100;
}
const height = y + 44;
process.stdout
  .write(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="ui-sans-serif, system-ui, sans-serif" font-size="12" fill="#808890">
<title>One training step of the same run, predicted and measured</title>
<style>.title{font-size:14px;font-weight:600}.idle{fill:#808890;opacity:.12}</style>
${out.join("\n")}
</svg>
`);

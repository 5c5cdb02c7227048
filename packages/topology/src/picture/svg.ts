/**
 * A cluster as SVG: a row for each layer of switches, hosts below with their devices, and the cables
 * between what is shown. Long rows show their first boxes and say how many follow; cables inside a
 * row (dragonflies, tori) are arcs above it.
 */
import { formatBandwidth } from "@trireme/core";
import type { Cluster } from "../cluster.ts";
import { type Fabric, type LinkState, linkStates } from "../fabric/fabric.ts";
import { nicsOf } from "../host-ways.ts";
import type { Pool } from "../pool.ts";
import { cableRows, grouped } from "./cable-rows.ts";

export interface SvgOptions {
  /** Boxes shown of a row; 16 when left out. */
  readonly boxes?: number;
}

/** One row of boxes: a layer of switches, or the hosts. */
interface Row {
  readonly name: string;
  readonly count: number;
  readonly shown: number;
  readonly notes: readonly string[];
  /** Left edge of its first box, and the middle of all. */
  readonly x: number;
  readonly y: number;
}

const pitch = { x: 64, y: 108 };
const box = { width: 52, height: 24 };
/** About the width of a character of the labels. */
const character = 6;
const colours: Readonly<Record<LinkState, string>> = {
  up: "#8a94a6",
  degraded: "#b88600",
  flapping: "#e0701b",
  down: "#c62f3d",
};

/** The SVG document of a cluster; the same cluster gives the same text. */
export function clusterSvg(cluster: Cluster, options: SvgOptions = {}): string {
  const rows = layOut(cluster, Math.max(1, options.boxes ?? 16));
  const hosts = rows.at(-1)!;
  const pools = cluster.pools.filter((pool) => pool.firstHost < hosts.shown);
  const width = Math.ceil(
    Math.max(
      ...rows.map((r) => r.x + r.shown * pitch.x + 56),
      ...pools.map((p) => hosts.x + p.firstHost * pitch.x + poolNote(p).length * character + 12),
      24 + cluster.name.length * 9,
    ),
  );
  const height = hosts.y + 64 + 12 * pools.length;
  const states = cluster.fabric ? [...new Set(cluster.fabric.state)].toSorted((x, y) => x - y) : [];
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="sans-serif" font-size="11" style="background:#fff">`,
    `<title>${escape(cluster.name)}</title>`,
    "<style>rect{fill:#f4f6fa;stroke:#4a5568}.devices rect{fill:#2f6fed;stroke:none}text{fill:#1a202c}.note{fill:#5a6577;font-size:10px}line,path{stroke-width:1;fill:none}.worn{stroke-width:2}</style>",
    `<text x="12" y="22" font-size="14" font-weight="bold">${escape(cluster.name)}</text>`,
    ...(cluster.fabric ? drawCables(cluster, cluster.fabric, rows) : []),
    ...rows.flatMap(drawRow),
    ...drawHosts(hosts, pools),
    // What the colours say, where some cable is not up.
    ...(states.some((s) => s > 0)
      ? states.map((s, i) => {
          const name = linkStates[s]!;
          const x = 12 + i * 96;
          return `<text class="note" x="${x}" y="${height - 12}"><tspan fill="${colours[name]}">━━</tspan> ${name}</text>`;
        })
      : []),
    "</svg>",
    "",
  ].join("\n");
}

/** Rows from the top of the fabric to the hosts, centred, right of their labels. */
function layOut(cluster: Cluster, boxes: number): readonly Row[] {
  const { fabric } = cluster;
  const cables = fabric ? cableRows(fabric) : [[]];
  const layers = (fabric?.layers ?? [])
    .map(({ name, switches }, l) => ({ name, count: switches, notes: cables[l + 1]! }))
    .toReversed();
  const drafts = [...layers, { name: "hosts", count: cluster.hosts, notes: [] as string[] }];
  const longest = Math.max(
    ...drafts.flatMap((d) => [`${d.name} (${grouped(d.count)})`, ...d.notes].map((t) => t.length)),
  );
  const left = 24 + longest * character;
  const widest = Math.max(...drafts.map((d) => Math.min(d.count, boxes)));
  return drafts.map((draft, i): Row => {
    const shown = Math.min(draft.count, boxes);
    return { ...draft, shown, x: left + (widest - shown) * (pitch.x / 2), y: 84 + i * pitch.y };
  });
}

/** Middle of the i-th box of a row. */
function middle(row: Row, i: number): number {
  return row.x + i * pitch.x + box.width / 2;
}

/** Cables between shown boxes; parallel ones are one line, in the colour of the worst. */
function drawCables(cluster: Cluster, fabric: Fabric, rows: readonly Row[]): string[] {
  const { graph, layers, state } = fabric;
  /** Row and box of a node, where it is shown. */
  const placeOf = (node: number): { row: number; i: number } | undefined => {
    const layer = layers.findLastIndex((l) => node >= l.firstSwitch);
    const isHost = node < graph.endpoints;
    const row = isHost ? rows.length - 1 : layers.length - 1 - layer;
    const i = isHost ? hostOfNic(cluster, node) : node - layers[layer]!.firstSwitch;
    return i < rows[row]!.shown ? { row, i } : undefined;
  };
  const lines = new Map<string, { state: number; cables: number; bandwidth: number }>();
  for (let c = 0; c < graph.cables; c++) {
    const [a, b] = [placeOf(graph.a[c]!), placeOf(graph.b[c]!)];
    if (!a || !b) continue;
    const key = a.row === b.row ? arc(rows[a.row]!, a.i, b.i) : straight(rows, a, b);
    const line = lines.get(key);
    if (line) {
      line.state = Math.max(line.state, state[c]!);
      line.cables++;
    } else lines.set(key, { state: state[c]!, cables: 1, bandwidth: graph.bandwidth[c]! });
  }
  // The worst last, so that nothing covers them.
  return [...lines]
    .toSorted(([, x], [, y]) => x.state - y.state)
    .map(([shape, line]) => {
      const name = linkStates[line.state]!;
      const look = name === "up" ? ` stroke-opacity="0.6"` : ` class="worn"`;
      const title = `${line.cables} x ${formatBandwidth(line.bandwidth)}, ${name}`;
      return `<${shape} stroke="${colours[name]}"${look}><title>${title}</title></${shape.split(" ", 1)[0]}>`;
    });
}

/** From the bottom of the upper box to the top of the lower. */
function straight(
  rows: readonly Row[],
  a: { row: number; i: number },
  b: { row: number; i: number },
): string {
  const [upper, lower] = a.row < b.row ? [a, b] : [b, a];
  const [from, to] = [rows[upper.row]!, rows[lower.row]!];
  const half = box.height / 2;
  return `line x1="${middle(from, upper.i)}" y1="${from.y + half}" x2="${middle(to, lower.i)}" y2="${to.y - half}"`;
}

/** Above two boxes of one row, the higher the farther they are apart. */
function arc(row: Row, a: number, b: number): string {
  const [low, high] = [Math.min(a, b), Math.max(a, b)];
  const top = row.y - box.height / 2;
  const rise = Math.min(88, 8 + 20 * Math.sqrt(high - low));
  const [from, to] = [middle(row, low), middle(row, high)];
  return `path d="M${from} ${top}Q${(from + to) / 2} ${(top - rise).toFixed(1)} ${to} ${top}"`;
}

function drawRow(row: Row): string[] {
  const { name, count, shown, notes, y } = row;
  const out = [`<text x="12" y="${y + 4}">${escape(name)} (${grouped(count)})</text>`];
  for (const [i, note] of notes.entries()) {
    out.push(`<text class="note" x="12" y="${y + 18 + 13 * i}">${escape(note)}</text>`);
  }
  for (let i = 0; i < shown; i++) {
    const x = middle(row, i);
    out.push(
      `<rect x="${x - box.width / 2}" y="${y - box.height / 2}" width="${box.width}" height="${box.height}" rx="4"/>`,
      `<text x="${x}" y="${y + 4}" text-anchor="middle">${i}</text>`,
    );
  }
  if (shown < count) {
    out.push(`<text x="${row.x + shown * pitch.x}" y="${y + 4}">+${grouped(count - shown)}</text>`);
  }
  return out;
}

/** Devices below each host, and the pools by name below their first hosts, a line each. */
function drawHosts(row: Row, pools: readonly Pool[]): string[] {
  const out: string[] = [];
  const { y } = row;
  for (let host = 0; host < row.shown; host++) {
    const { accelerators: count, accelerator } = pools.findLast((p) => p.firstHost <= host)!.host;
    const side = Math.min(10, (box.width - 2) / count);
    out.push(`<g class="devices"><title>${count} x ${escape(accelerator.name)}</title>`);
    for (let d = 0; d < count; d++) {
      const left = middle(row, host) - (side * count) / 2 + d * side;
      out.push(
        `<rect x="${left.toFixed(2)}" y="${y + 16}" width="${(side - 1).toFixed(2)}" height="8"/>`,
      );
    }
    out.push("</g>");
  }
  for (const [i, pool] of pools.entries()) {
    const [x, line] = [row.x + pool.firstHost * pitch.x, y + 38 + 12 * i];
    out.push(`<text class="note" x="${x}" y="${line}">${escape(poolNote(pool))}</text>`);
  }
  return out;
}

function poolNote({ hosts, host }: Pool): string {
  return `${grouped(hosts)} x ${host.name}: ${host.accelerators} x ${host.accelerator.name} each`;
}

/** Number of the host that a NIC of the cluster is in. */
function hostOfNic(cluster: Cluster, nic: number): number {
  const pool = cluster.pools.findLast((p) => p.firstNic <= nic)!;
  return pool.firstHost + Math.floor((nic - pool.firstNic) / nicsOf(pool.host));
}

function escape(text: string): string {
  return text
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

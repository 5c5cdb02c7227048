/**
 * A cluster as SVG: a row for each layer of switches, hosts below with their devices, and the cables
 * between what is shown. Long rows show their first boxes and say how many follow.
 */
import { formatBandwidth } from "@trireme/core";
import type { Cluster } from "../cluster.ts";
import { type LinkState, linkStates } from "../fabric/fabric.ts";
import { nicsOf } from "../host-ways.ts";

export interface SvgOptions {
  /** Boxes shown of a row; 16 when left out. */
  readonly boxes?: number;
}

const pitch = { x: 64, y: 96 };
const box = { width: 52, height: 24 };
const margin = 120;
const colours: Readonly<Record<LinkState, string>> = {
  up: "#8a94a6",
  degraded: "#d9a400",
  flapping: "#e0701b",
  down: "#c62f3d",
};

/** The SVG document of a cluster; the same cluster gives the same text. */
export function clusterSvg(cluster: Cluster, options: SvgOptions = {}): string {
  const shownOf = (count: number): number => Math.min(count, Math.max(1, options.boxes ?? 16));
  const layers = cluster.fabric ? cluster.fabric.layers.toReversed() : [];
  const widest = Math.max(shownOf(cluster.hosts), ...layers.map((l) => shownOf(l.switches)));
  const width = 2 * margin + widest * pitch.x;
  const hostRow = layers.length;
  const height = (hostRow + 1) * pitch.y + 40;
  const out: string[] = [];
  /** Centre of the i-th of `count` boxes of a row. */
  const place = (row: number, i: number, count: number): [number, number] => [
    margin + (widest - shownOf(count)) * (pitch.x / 2) + (i + 0.5) * pitch.x,
    40 + row * pitch.y,
  ];

  if (cluster.fabric) {
    const { graph, state } = cluster.fabric;
    /** Centre of a node, where it is shown. */
    const centre = (node: number): [number, number] | undefined => {
      if (node < graph.endpoints) {
        const host = hostOfNic(cluster, node);
        return host < shownOf(cluster.hosts) ? place(hostRow, host, cluster.hosts) : undefined;
      }
      const row = layers.findIndex(
        (l) => node >= l.firstSwitch && node < l.firstSwitch + l.switches,
      );
      const { firstSwitch, switches } = layers[row]!;
      const i = node - firstSwitch;
      return i < shownOf(switches) ? place(row, i, switches) : undefined;
    };
    // Parallel cables are one line; the worst state colours it.
    const lines = new Map<string, { state: number; cables: number; bandwidth: number }>();
    for (let c = 0; c < graph.cables; c++) {
      const [from, to] = [centre(graph.a[c]!), centre(graph.b[c]!)];
      if (!from || !to) continue;
      const key = `x1="${from[0]}" y1="${from[1]}" x2="${to[0]}" y2="${to[1]}"`;
      const line = lines.get(key);
      if (line) {
        line.state = Math.max(line.state, state[c]!);
        line.cables++;
      } else lines.set(key, { state: state[c]!, cables: 1, bandwidth: graph.bandwidth[c]! });
    }
    for (const [ends, line] of lines) {
      const name = linkStates[line.state]!;
      out.push(
        `<line ${ends} stroke="${colours[name]}"><title>${line.cables} x ${formatBandwidth(line.bandwidth)}, ${name}</title></line>`,
      );
    }
  }
  const drawRow = (
    row: number,
    name: string,
    count: number,
    label: (i: number) => string,
  ): void => {
    const y = 40 + row * pitch.y;
    out.push(`<text x="8" y="${y + 4}">${escape(name)} (${count})</text>`);
    for (let i = 0; i < shownOf(count); i++) {
      const [x] = place(row, i, count);
      out.push(
        `<rect x="${x - box.width / 2}" y="${y - box.height / 2}" width="${box.width}" height="${box.height}" rx="4"/>`,
        `<text x="${x}" y="${y + 4}" text-anchor="middle">${escape(label(i))}</text>`,
      );
    }
    if (shownOf(count) < count) {
      const [x] = place(row, shownOf(count), count);
      out.push(`<text x="${x - box.width / 2}" y="${y + 4}">+${count - shownOf(count)}</text>`);
    }
  };
  for (const [row, { name, switches }] of layers.entries()) drawRow(row, name, switches, String);
  drawRow(hostRow, "host", cluster.hosts, String);
  for (let host = 0; host < shownOf(cluster.hosts); host++) {
    const pool = cluster.pools.findLast((p) => p.firstHost <= host)!;
    const [x, y] = place(hostRow, host, cluster.hosts);
    const count = pool.host.accelerators;
    const side = Math.min(10, (box.width - 2) / count);
    out.push(`<g class="devices"><title>${count} x ${escape(pool.host.accelerator.name)}</title>`);
    for (let d = 0; d < count; d++) {
      const left = x - (side * count) / 2 + d * side;
      out.push(
        `<rect x="${left.toFixed(2)}" y="${y + 16}" width="${(side - 1).toFixed(2)}" height="8"/>`,
      );
    }
    out.push("</g>");
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" font-family="sans-serif" font-size="11">`,
    `<title>${escape(cluster.name)}</title>`,
    "<style>rect{fill:#f4f6fa;stroke:#4a5568}.devices rect{fill:#2f6fed;stroke:none}text{fill:#1a202c}</style>",
    ...out,
    "</svg>",
    "",
  ].join("\n");
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

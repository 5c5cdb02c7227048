import { type BytesPerSecond, formatBandwidth } from "@trireme/core";
import { type Fabric, layerOf } from "../fabric/fabric.ts";

/** Cables of one bandwidth between two layers; layer 0 is the hosts'. */
interface CableRow {
  readonly upper: number;
  readonly lower: number;
  readonly bandwidth: BytesPerSecond;
  count: number;
}

/** What leaves each layer downwards or across, such as "1,024 x 50 GB/s to tor"; [0] is empty. */
export function cableRows(fabric: Fabric): readonly (readonly string[])[] {
  const { graph, layers } = fabric;
  const layerOfNode = new Uint8Array(graph.nodes);
  for (let n = graph.endpoints; n < graph.nodes; n++) layerOfNode[n] = layerOf(fabric, n);
  const rows = new Map<string, CableRow>();
  for (let c = 0; c < graph.cables; c++) {
    const [a, b] = [layerOfNode[graph.a[c]!]!, layerOfNode[graph.b[c]!]!];
    const [upper, lower, bandwidth] = [Math.max(a, b), Math.min(a, b), graph.bandwidth[c]!];
    const key = `${upper} ${lower} ${bandwidth}`;
    const row = rows.get(key);
    if (row) row.count++;
    else rows.set(key, { upper, lower, bandwidth, count: 1 });
  }
  return Array.from({ length: layers.length + 1 }, (_, l) =>
    [...rows.values()]
      .filter((row) => row.upper === l)
      .map(({ lower, bandwidth, count }) => {
        const to = lower === 0 ? "hosts" : layers[lower - 1]!.name;
        return `${grouped(count)} x ${formatBandwidth(bandwidth)} to ${to}`;
      }),
  );
}

/** A count with its thousands apart: `12,288`. */
export function grouped(n: number): string {
  return n.toLocaleString("en-US");
}

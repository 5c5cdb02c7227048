/**
 * The time of a collective on a cluster, as α-β on the cluster's links: rings and double binary
 * trees that fill a host before they leave it, with NCCL's latencies of its Simple protocol
 * (tuning.cc). The cheapest algorithm is taken unless one is asked for.
 */
import { type Bytes, type BytesPerSecond, type Seconds, TriremeError, us } from "@trireme/core";
import { type Cluster, hostIndex, hostOf, linkBetween } from "@trireme/topology";

/** Operations that can be priced. */
export type PricedOperation =
  | "all-reduce"
  | "all-gather"
  | "reduce-scatter"
  | "broadcast"
  | "all-to-all"
  | "send";

/** Options of `collectiveTime`. */
export interface CollectiveTimeOptions {
  readonly operation: PricedOperation;
  /** The full buffer, as nccl-tests counts: for an all-gather the output, for a reduce-scatter the input. */
  readonly bytes: Bytes;
  readonly cluster: Cluster;
  /** Devices that take part; for a send the two ends. */
  readonly ranks: readonly number[];
  readonly algorithm?: "ring" | "tree";
}

interface Extent {
  readonly hosts: number;
  readonly perHost: number;
  readonly intra: { readonly latency: Seconds; readonly bandwidth: BytesPerSecond };
  readonly inter: { readonly latency: Seconds; readonly bandwidth: BytesPerSecond };
}

/** Hosts and links that a set of devices spans. */
function extentOf(cluster: Cluster, ranks: readonly number[]): Extent {
  const perHost = new Map<number, number>();
  for (const device of ranks) {
    const host = hostIndex(cluster, device);
    perHost.set(host, (perHost.get(host) ?? 0) + 1);
  }
  const host = hostOf(cluster, ranks[0]!);
  const first = ranks[0]!;
  const beside = ranks.find(
    (d) => d !== first && hostIndex(cluster, d) === hostIndex(cluster, first),
  );
  const beyond = ranks.find((d) => hostIndex(cluster, d) !== hostIndex(cluster, first));
  const intra = beside === undefined ? host.link : linkBetween(cluster, first, beside);
  const inter = beyond === undefined ? host.network : linkBetween(cluster, first, beyond);
  return { hosts: perHost.size, perHost: Math.max(...perHost.values()), intra, inter };
}

/** Seconds of one collective among `ranks`, alone on the cluster; 0 for one rank. */
export function collectiveTime(options: CollectiveTimeOptions): Seconds {
  const { operation, bytes, cluster, ranks, algorithm } = options;
  const n = ranks.length;
  if (new Set(ranks).size !== n || n === 0) {
    throw new TriremeError("RANKS", `ranks ${ranks.join(", ")} must be different and at least one`);
  }
  if (!(bytes >= 0)) throw new TriremeError("BYTES", `bytes ${bytes} must be at least 0`);
  if (n === 1) return 0;
  const { hosts, perHost, intra, inter } = extentOf(cluster, ranks);
  // Channels leave a host over the shares of all its devices that take part.
  const network = inter.bandwidth * perHost;
  const bus = hosts === 1 ? intra.bandwidth : perHost === 1 ? network : Math.min(intra.bandwidth, network);
  const share = (n - 1) / n;
  const hopsInside = n - hosts;
  const ringHops = hopsInside * intra.latency + (hosts > 1 ? (hosts - 1) * inter.latency : 0);
  switch (operation) {
    case "send": {
      const link = linkBetween(cluster, ranks[0]!, ranks[1] ?? ranks[0]!);
      return link.latency + bytes / link.bandwidth;
    }
    case "all-reduce": {
      const ring = us(8.4) + 2 * ringHops + (2 * share * bytes) / bus;
      const treeHops = (n / hosts - 1) * intra.latency + Math.log2(hosts) * inter.latency;
      const tree = us(8.4) + 2 * treeHops + (2 * bytes) / (0.92 * bus);
      return algorithm === "ring" ? ring : algorithm === "tree" ? tree : Math.min(ring, tree);
    }
    case "all-gather":
    case "reduce-scatter":
      return us(8.4) + ringHops + (share * bytes) / bus;
    case "broadcast":
      return us(8.4) + ringHops + bytes / bus;
    case "all-to-all": {
      // Each rank sends 1/n of its buffer to every other, inside and outside its host at once.
      const inside = ((perHost - 1) / n) * (bytes / intra.bandwidth);
      const outside = ((n - perHost) / n) * (bytes / inter.bandwidth);
      return (
        us(8.4) + (hosts > 1 ? inter.latency : intra.latency) + Math.max(inside, outside)
      );
    }
  }
}

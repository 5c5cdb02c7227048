/** Collectives as flows, and how long they take beside each other. */
import type { Bytes, Seconds } from "@trireme/core";
import type { CollectivePlan } from "@trireme/collectives";
import { type Cluster, linkBetween } from "@trireme/topology";
import type { TrafficFlow } from "./traffic.ts";
import { pairTraffic } from "./plan-bytes.ts";

/** The flows of a collective: one for each pair of devices that talk, with all that goes between them. */
export function collectiveFlows(
  plan: CollectivePlan,
  o: {
    /** Device of each rank of the plan. */
    readonly devices: ArrayLike<number>;
    /** Buffer of one rank; see `chunkBytes`. */
    readonly bytes: Bytes;
    readonly start?: Seconds;
    readonly group?: number;
  },
): TrafficFlow[] {
  const { from, to, bytes } = pairTraffic(plan, o.bytes);
  const { start = 0, group = 0 } = o;
  return Array.from(bytes, (each, i) => {
    return { from: o.devices[from[i]!]!, to: o.devices[to[i]!]!, bytes: each, start, group };
  });
}

/**
 * The same in closed form, for flows that share no link: the longest of bytes over bandwidth plus
 * latency. `simulateFlows` with `idealControl` gives exactly this where nothing is shared.
 */
export function unsharedTime(cluster: Cluster, flows: readonly TrafficFlow[]): Seconds {
  let longest = 0;
  for (const { from, to, bytes, start = 0 } of flows) {
    if (from === to) continue;
    const { bandwidth, latency } = linkBetween(cluster, from, to);
    longest = Math.max(longest, start + bytes / bandwidth + latency);
  }
  return longest;
}

/** ASTRA-sim's dimensions to and from our clusters and fabrics. */
import { TriremeError } from "@trireme/core";
import type { Cluster } from "../cluster.ts";
import { type Cable, explicitFabric } from "../fabric/explicit.ts";
import type { Fabric } from "../fabric/fabric.ts";
import type { AstraDimension, AstraNetwork } from "./astra-sim.ts";

/**
 * The fabric of a network: a router for every NPU, and along each dimension rings, full meshes or
 * switches between the routers that differ in it alone. The way from an NPU into its router is as
 * wide as all its cables.
 */
export function astraFabric(network: AstraNetwork): Fabric {
  const { dimensions } = network;
  const npus = dimensions.reduce((product, d) => product * d.npus, 1);
  const cables: Cable[] = [];
  const injection = dimensions.reduce((sum, d) => sum + d.bandwidth * portsOf(d), 0);
  for (let n = 0; n < npus; n++) {
    cables.push({ a: n, b: npus + n, bandwidth: injection || 1, latency: 0 });
  }
  const layers = [{ name: "npu", switches: npus }];
  let nodes = 2 * npus;
  let stride = 1;
  for (const [d, { topology, npus: size, bandwidth, latency }] of dimensions.entries()) {
    const first = nodes;
    for (let r = 0; r < npus; r++) {
      const at = Math.floor(r / stride) % size;
      if (topology === "Switch") {
        if (size === 1) continue;
        const group = Math.floor(r / (stride * size)) * stride + (r % stride);
        cables.push({ a: npus + r, b: first + group, bandwidth, latency });
        nodes = Math.max(nodes, first + group + 1);
        continue;
      }
      const reach = topology === "Ring" ? 1 : size - 1;
      for (let step = 1; step <= reach; step++) {
        const to = (at + step) % size;
        // Each pair once; a ring closes from its last to its first unless it is two.
        const closes = topology === "Ring" && at === size - 1 && size > 2;
        if (to <= at && !closes) continue;
        cables.push({ a: npus + r, b: npus + r + (to - at) * stride, bandwidth, latency });
      }
    }
    if (nodes > first) layers.push({ name: `dimension-${d}`, switches: nodes - first });
    stride *= size;
  }
  return explicitFabric({ name: "astra-sim", endpoints: npus, layers, cables });
}

/** Cables of one NPU along a dimension. */
function portsOf({ topology, npus }: AstraDimension): number {
  if (npus === 1) return 0;
  return topology === "Switch" ? 1 : topology === "Ring" ? Math.min(2, npus - 1) : npus - 1;
}

/**
 * A cluster as ASTRA-sim's dimensions: the devices of a host (or of a scale-up fabric) on a switch,
 * and these on another at a device's share of the network. Of several pools the slowest links count.
 * @throws TriremeError "CLUSTER" when hosts have different numbers of devices.
 */
export function astraNetworkOf(cluster: Cluster): AstraNetwork {
  const sizes = new Set(
    cluster.pools.map((p) => p.host.accelerators * Math.min(p.hosts, p.host.scaleUpHosts ?? 1)),
  );
  const [inside = 1] = sizes;
  const outside = cluster.devices / inside;
  if (sizes.size !== 1 || !Number.isInteger(outside)) {
    throw new TriremeError(
      "CLUSTER",
      `${cluster.name}: ${cluster.devices} devices in groups of ${[...sizes].join(" and ")}; ASTRA-sim's dimensions need equal groups`,
    );
  }
  const dimension = (npus: number, of: "link" | "network"): AstraDimension => ({
    topology: "Switch",
    npus,
    bandwidth: Math.min(...cluster.pools.map((p) => p.host[of].bandwidth)),
    latency: Math.max(...cluster.pools.map((p) => p.host[of].latency)),
  });
  const dimensions = [dimension(inside, "link"), dimension(outside, "network")];
  const shown = dimensions.filter((d) => d.npus > 1);
  return { dimensions: shown.length > 0 ? shown : dimensions.slice(0, 1) };
}

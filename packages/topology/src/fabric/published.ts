/** Fabrics of published clusters, from the papers' own counts. */
import { type BytesPerSecond, Gbps, TriremeError } from "@trireme/core";
import { closFabric } from "./clos.ts";
import { dragonflyFabric } from "./dragonfly.ts";
import type { Fabric } from "./fabric.ts";
import { fatTreeFabric, foldTop } from "./fat-tree.ts";

/**
 * MegaScale (Jiang et al., NSDI 2024, section 3.6): three layers of 64-port 400G switches, 32 ports
 * down and 32 up; eight ports of a host on eight ToR switches. Each 400G port down of a ToR is split
 * in two of 200G, so that 64 hosts share a set of ToRs and an uplink has twice the rate of a port.
 * Unsplit, hosts have 400G ports and 32 share a set. A pod is four sets.
 * @throws TriremeError "FABRIC" beyond 64 pods.
 */
export function megascaleFabric(options: {
  readonly hosts: number;
  readonly split?: boolean;
}): Fabric {
  const { hosts, split = true } = options;
  const perSet = split ? 64 : 32;
  const pods = Math.ceil(Math.ceil(hosts / perSet) / 4);
  if (pods > 64) {
    throw new TriremeError(
      "FABRIC",
      `megascale: ${hosts} hosts are ${pods} pods; 64-port core switches join 64, ${64 * 4 * perSet} hosts`,
    );
  }
  return closFabric({
    name: split ? "megascale" : "megascale-unsplit",
    hosts,
    nics: 8,
    rails: true,
    levels: [
      { name: "tor", children: perSet, bandwidth: Gbps(split ? 200 : 400) },
      { name: "aggregation", children: 32, parents: 32, bandwidth: Gbps(400) },
      { name: "core", children: 64, ...foldTop(32, pods, 64, true), bandwidth: Gbps(400) },
    ],
  });
}

/**
 * Llama 3's RoCE cluster (Grattafiori et al. 2024, section 3.3.1): racks of two 8-GPU hosts and one
 * ToR, 192 racks to a pod of 3,072 GPUs without over-subscription, pods joined at 1:7. A cluster
 * switch has 192 x 400G down; the seventh of that, 27.4 ports, is built as 28 cables of 392 Gbit/s,
 * so that the ratio is exact.
 */
export function llama3Fabric(options: { readonly hosts: number }): Fabric {
  const pods = Math.max(1, Math.ceil(options.hosts / 384));
  return closFabric({
    name: "llama3",
    hosts: options.hosts,
    nics: 8,
    rails: false,
    levels: [
      { name: "tor", children: 16, bandwidth: Gbps(400) },
      { name: "cluster", children: 192, parents: 16, bandwidth: Gbps(400) },
      { name: "aggregation", children: pods, parents: 28, bandwidth: (192 * Gbps(400)) / 7 / 28 },
    ],
  });
}

/** Selene (Narayanan et al., SC 2021, section 5): 8 x 200G HDR a host, a three-level fat tree. */
export function seleneFabric(options: { readonly hosts: number }): Fabric {
  return fatTreeFabric({
    name: "selene",
    hosts: options.hosts,
    nics: 8,
    rails: true,
    radix: 40,
    levels: 3,
    bandwidth: Gbps(200),
  });
}

/**
 * Slingshot as on Frontier (Atchley et al., SC 2023): 64-port 200G switches, 32 in a group, 16 ports
 * to hosts, 31 to the group, the rest between groups.
 */
export function slingshotFabric(options: {
  readonly hosts: number;
  readonly nics?: number;
  readonly bandwidth?: BytesPerSecond;
}): Fabric {
  const { hosts, nics = 4, bandwidth = Gbps(200) } = options;
  return dragonflyFabric({
    name: "slingshot",
    endpoints: hosts * nics,
    ports: 16,
    routers: 32,
    globals: 17,
    bandwidth,
  });
}

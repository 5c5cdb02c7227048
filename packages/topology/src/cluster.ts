/**
 * Hosts in a row, each with its devices; device numbers run host by host, pool by pool. A fabric
 * joins the hosts' NICs, numbered in the same way, and domains say what fails together.
 */
import { TriremeError } from "@trireme/core";
import { type Domains, type DomainOptions, defineDomains } from "./domains.ts";
import { type Fabric, capacityOf } from "./fabric/fabric.ts";
import { type Host, host as hostNamed } from "./host.ts";
import { nicOf, nicsOf, pairLink } from "./host-ways.ts";
import { type Link, defineLink } from "./link.ts";
import { type Pool, poolOf } from "./pool.ts";

export interface Cluster {
  readonly name: string;
  /** All devices. */
  readonly devices: number;
  /** All hosts. */
  readonly hosts: number;
  readonly pools: readonly Pool[];
  /** What joins the hosts; its endpoints are all NICs in order. Without, ports meet unhindered. */
  readonly fabric?: Fabric;
  readonly domains: Domains;
}

/** Hosts of one kind; `host` is a name of the catalogue or a host of your own. */
export interface PoolOptions {
  readonly host: Host | string;
  readonly hosts: number;
  /** One device's share of its host's network ports, where it is not the host's own. */
  readonly network?: Link;
}

interface CommonOptions {
  readonly name?: string;
  readonly fabric?: Fabric;
  readonly domains?: DomainOptions;
}

export type ClusterOptions =
  | (PoolOptions & CommonOptions)
  | (CommonOptions & { readonly pools: readonly PoolOptions[] });

/**
 * A cluster of one kind of host, or of pools of several.
 * @throws TriremeError "CLUSTER" when there is no pool, a count is not a positive integer, the fabric
 * has another number of endpoints than the hosts have NICs, or a domain does not cover the hosts.
 */
export function defineCluster(options: ClusterOptions): Cluster {
  const given = "pools" in options ? options.pools : [options];
  if (given.length === 0) throw new TriremeError("CLUSTER", "a cluster needs at least one pool");
  const pools: Pool[] = [];
  let [hosts, devices, nics] = [0, 0, 0];
  for (const pool of given) {
    const known = typeof pool.host === "string" ? hostNamed(pool.host) : pool.host;
    const host = pool.network ? { ...known, network: pool.network } : known;
    if (!Number.isSafeInteger(pool.hosts) || pool.hosts < 1) {
      throw new TriremeError(
        "CLUSTER",
        `${pool.hosts} hosts of ${host.name}: use an integer from 1 up`,
      );
    }
    const first = { firstHost: hosts, firstDevice: devices, firstNic: nics };
    pools.push({ host, hosts: pool.hosts, ...first });
    hosts += pool.hosts;
    devices += pool.hosts * host.accelerators;
    nics += pool.hosts * nicsOf(host);
  }
  const name = options.name ?? pools.map((p) => `${p.hosts}x${p.host.name}`).join("+");
  const { fabric } = options;
  if (fabric && fabric.graph.endpoints !== nics) {
    throw new TriremeError(
      "CLUSTER",
      `${name}: the fabric ${fabric.name} has ${fabric.graph.endpoints} endpoints, but the hosts have ${nics} NICs`,
    );
  }
  const domains = defineDomains({ hosts, pools, ...(fabric && { fabric }) }, options.domains ?? {});
  return { name, devices, hosts, pools, ...(fabric && { fabric }), domains };
}

/**
 * The host that a device sits in.
 * @throws TriremeError "DEVICE" when the cluster has no such device.
 */
export function hostOf(cluster: Cluster, device: number): Host {
  return poolOf(cluster, device).host;
}

/**
 * The NIC that a device uses, counted over all hosts: its endpoint of the fabric.
 * @throws TriremeError "DEVICE" when the cluster has no such device.
 */
export function nicIndex(cluster: Cluster, device: number): number {
  const pool = poolOf(cluster, device);
  const at = device - pool.firstDevice;
  const slot = at % pool.host.accelerators;
  const before = (at - slot) / pool.host.accelerators;
  return pool.firstNic + before * nicsOf(pool.host) + nicOf(pool.host, slot);
}

/**
 * The rail that a device is on: the number of its NIC within the host.
 * @throws TriremeError "DEVICE" when the cluster has no such device.
 */
export function railOf(cluster: Cluster, device: number): number {
  const pool = poolOf(cluster, device);
  return nicOf(pool.host, (device - pool.firstDevice) % pool.host.accelerators);
}

/**
 * The way from device `a` to device `b`: the device itself, the host's own way between the two, the
 * scale-up fabric that joins hosts, or the network at the slowest of the two devices' shares and,
 * with a fabric, their ports.
 * @throws TriremeError "DEVICE" when the cluster has no such device.
 */
export function linkBetween(cluster: Cluster, a: number, b: number): Link {
  const [from, to] = [poolOf(cluster, a), poolOf(cluster, b)];
  if (a === b) return defineLink("local", from.host.accelerator.memoryBandwidth);
  if (from === to) {
    const { accelerators, scaleUpHosts = 1, link } = from.host;
    const [i, j] = [a - from.firstDevice, b - from.firstDevice];
    if (Math.floor(i / accelerators) === Math.floor(j / accelerators)) {
      return pairLink(from.host, i % accelerators, j % accelerators);
    }
    const within = accelerators * scaleUpHosts;
    if (Math.floor(i / within) === Math.floor(j / within)) return link;
  }
  const [x, y] = [from.host.network, to.host.network];
  let bandwidth = Math.min(x.bandwidth, y.bandwidth);
  const { fabric } = cluster;
  if (fabric) {
    // An endpoint's cable has its number as first link out.
    for (const device of [a, b]) {
      const port = fabric.graph.first[nicIndex(cluster, device)]!;
      bandwidth = Math.min(bandwidth, capacityOf(fabric, fabric.graph.out[port]!));
    }
  }
  return defineLink("network", bandwidth, Math.max(x.latency, y.latency));
}

/** Hosts in a row, each with its devices; device numbers run host by host. */
import { TriremeError } from "@trireme/core";
import { type Host, host as hostNamed } from "./host.ts";
import { type Link, defineLink } from "./link.ts";

/** A run of equal hosts. */
export interface Pool {
  readonly host: Host;
  readonly hosts: number;
  /** First host and first device of the pool. */
  readonly firstHost: number;
  readonly firstDevice: number;
}

export interface Cluster {
  readonly name: string;
  /** All devices. */
  readonly devices: number;
  /** All hosts. */
  readonly hosts: number;
  readonly pools: readonly Pool[];
}

/** Hosts of one kind; `host` is a name of the catalogue or a host of your own. */
export interface PoolOptions {
  readonly host: Host | string;
  readonly hosts: number;
}

export type ClusterOptions =
  | (PoolOptions & { readonly name?: string })
  | { readonly name?: string; readonly pools: readonly PoolOptions[] };

/**
 * A cluster of one kind of host, or of pools of several.
 * @throws TriremeError "CLUSTER" when there is no pool or a count is not a positive integer.
 */
export function defineCluster(options: ClusterOptions): Cluster {
  const given = "pools" in options ? options.pools : [options];
  if (given.length === 0) throw new TriremeError("CLUSTER", "a cluster needs at least one pool");
  const pools: Pool[] = [];
  let hosts = 0;
  let devices = 0;
  for (const pool of given) {
    const host = typeof pool.host === "string" ? hostNamed(pool.host) : pool.host;
    if (!Number.isSafeInteger(pool.hosts) || pool.hosts < 1) {
      throw new TriremeError(
        "CLUSTER",
        `${pool.hosts} hosts of ${host.name}: use an integer from 1 up`,
      );
    }
    pools.push({ host, hosts: pool.hosts, firstHost: hosts, firstDevice: devices });
    hosts += pool.hosts;
    devices += pool.hosts * host.accelerators;
  }
  const name = options.name ?? pools.map((p) => `${p.hosts}x${p.host.name}`).join("+");
  return { name, devices, hosts, pools };
}

/**
 * The host that a device sits in.
 * @throws TriremeError "DEVICE" when the cluster has no such device.
 */
export function hostOf(cluster: Cluster, device: number): Host {
  return poolOf(cluster, device).host;
}

/**
 * The number of the host that a device sits in, counted over all pools.
 * @throws TriremeError "DEVICE" when the cluster has no such device.
 */
export function hostIndex(cluster: Cluster, device: number): number {
  const pool = poolOf(cluster, device);
  return pool.firstHost + Math.floor((device - pool.firstDevice) / pool.host.accelerators);
}

/**
 * The way from device `a` to device `b`: the device itself, the host's link, the scale-up fabric
 * that joins hosts, or the network at the slower of the two ports.
 * @throws TriremeError "DEVICE" when the cluster has no such device.
 */
export function linkBetween(cluster: Cluster, a: number, b: number): Link {
  const [from, to] = [poolOf(cluster, a), poolOf(cluster, b)];
  if (a === b) return defineLink("local", from.host.accelerator.memoryBandwidth);
  if (from === to) {
    const within = from.host.accelerators * (from.host.scaleUpHosts ?? 1);
    const [i, j] = [a - from.firstDevice, b - from.firstDevice];
    if (Math.floor(i / within) === Math.floor(j / within)) return from.host.link;
  }
  const [x, y] = [from.host.network, to.host.network];
  return defineLink("network", Math.min(x.bandwidth, y.bandwidth), Math.max(x.latency, y.latency));
}

function poolOf(cluster: Cluster, device: number): Pool {
  if (!Number.isInteger(device) || device < 0 || device >= cluster.devices) {
    throw new TriremeError(
      "DEVICE",
      `device ${device} is outside the cluster's 0..${cluster.devices - 1}`,
    );
  }
  let pool = cluster.pools[0]!;
  for (const next of cluster.pools) {
    if (next.firstDevice > device) break;
    pool = next;
  }
  return pool;
}

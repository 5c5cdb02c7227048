/** Where a set of devices lies: scale-up domains, how many devices share each, and their links. */
import { type BytesPerSecond, TriremeError } from "@trireme/core";
import {
  type Cluster,
  type Host,
  type Link,
  hostIndex,
  hostOf,
  linkBetween,
} from "@trireme/topology";

export interface Extent {
  readonly ranks: number;
  /** Scale-up domains (hosts, or racks that one scale-up fabric joins). */
  readonly hosts: number;
  /** Devices in the emptiest domain: their ports carry what all exchange with the others. */
  readonly fewest: number;
  readonly most: number;
  /** The host with the slowest link, and the devices, numbered within it, of the first domain. */
  readonly host: Host;
  readonly inside: readonly number[];
  /** The slowest link inside a domain and between domains. */
  readonly link: Link;
  readonly network: Link;
}

/** Throws `DEVICES` unless the devices differ and there is at least one. */
export function extentOf(cluster: Cluster, devices: readonly number[]): Extent {
  if (devices.length === 0 || new Set(devices).size !== devices.length) {
    throw new TriremeError(
      "DEVICES",
      `devices ${devices.slice(0, 16).join(", ")}: there must be at least one, none twice`,
    );
  }
  const domains = new Map<number, number[]>();
  for (const device of devices) {
    const domain = domainOf(cluster, device);
    const members = domains.get(domain);
    if (members === undefined) domains.set(domain, [device]);
    else members.push(device);
  }
  const groups = [...domains.values()];
  let host = hostOf(cluster, groups[0]![0]!);
  for (const [first] of groups) {
    const other = hostOf(cluster, first!);
    if (other !== host && other.link.bandwidth < host.link.bandwidth) host = other;
  }
  const first = groups[0]!;
  const counts = groups.map((group) => group.length);
  const base = first[0]! - (positionOf(cluster, first[0]!) % host.accelerators);
  return {
    ranks: devices.length,
    hosts: groups.length,
    // Not by spreading: there may be more domains than a call takes arguments.
    fewest: counts.reduce((least, count) => Math.min(least, count)),
    most: counts.reduce((most, count) => Math.max(most, count)),
    host,
    inside: first.map((device) => device - base),
    link: first.length > 1 ? linkBetween(cluster, first[0]!, first[1]!) : host.link,
    network: groups.length > 1 ? slowestNetwork(cluster, groups) : host.network,
  };
}

function slowestNetwork(cluster: Cluster, groups: readonly (readonly number[])[]): Link {
  let slowest = linkBetween(cluster, groups[0]![0]!, groups[1]![0]!);
  for (let i = 1; i + 1 < groups.length; i++) {
    const link = linkBetween(cluster, groups[i]![0]!, groups[i + 1]![0]!);
    if (link.bandwidth < slowest.bandwidth) slowest = link;
  }
  return slowest;
}

/** Position of a device within its pool. */
function positionOf(cluster: Cluster, device: number): number {
  const pool = cluster.pools.findLast((p) => p.firstDevice <= device);
  return device - (pool?.firstDevice ?? 0);
}

/** The first host of a device's scale-up domain. */
function domainOf(cluster: Cluster, device: number): number {
  const host = hostIndex(cluster, device);
  const { scaleUpHosts = 1 } = hostOf(cluster, device);
  if (scaleUpHosts === 1) return host;
  const pool = cluster.pools.findLast((p) => p.firstHost <= host);
  return host - ((host - (pool?.firstHost ?? 0)) % scaleUpHosts);
}

/** All ports of the emptiest domain together. */
export function outside({ network, fewest }: Extent): BytesPerSecond {
  return network.bandwidth * fewest;
}

/**
 * Failure domains: what fails together. An accelerator and a host fail alone; hosts share racks,
 * sets of ToR switches, pods and power feeds. A domain is a number of hosts in a row, or a list that
 * gives every host its own, as importers of real clusters do.
 */
import { TriremeError } from "@trireme/core";
import type { Cluster } from "./cluster.ts";
import type { Fabric } from "./fabric/fabric.ts";
import { nicsOf } from "./host-ways.ts";
import { type Pool, hostIndex } from "./pool.ts";

/** Kinds of domain; all but the power feed from the smallest up. */
export const domainKinds = ["accelerator", "host", "rack", "tor-set", "pod", "power-feed"] as const;

export type DomainKind = (typeof domainKinds)[number];

/** Hosts in each domain, in a row; or the number of every host's domain. */
export type Grouping = number | ArrayLike<number>;

export interface Domains {
  readonly rack: Grouping;
  readonly torSet: Grouping;
  readonly pod: Grouping;
  readonly powerFeed: Grouping;
}

export type DomainOptions = Partial<Domains>;

/** Hosts of a rack where nothing is known: four of 10 kW each. */
const hostsPerRack = 4;
/** Racks of a power feed where nothing is known. */
const racksPerFeed = 8;

/**
 * The domains of a cluster: as given, and else as its parts say. A rack is a scale-up fabric's hosts
 * or four; ToR sets and pods are the fabric's (groups, on a dragonfly); a feed is eight racks.
 * @throws TriremeError "CLUSTER" when a count is not a positive integer or a list not of all hosts.
 */
export function defineDomains(
  { hosts, pools, fabric }: { hosts: number; pools: readonly Pool[]; fabric?: Fabric },
  options: DomainOptions,
): Domains {
  const joined = Math.max(...pools.map((p) => p.host.scaleUpHosts ?? 1));
  const rack = options.rack ?? (joined > 1 ? joined : hostsPerRack);
  const nics = nicsOf(pools[0]!.host);
  const { torSet = rack, pod = hosts } = fabric ? fabricDomains(fabric, nics) : {};
  const domains: Domains = {
    rack,
    torSet: options.torSet ?? torSet,
    pod: options.pod ?? pod,
    powerFeed: options.powerFeed ?? (typeof rack === "number" ? rack * racksPerFeed : rack),
  };
  for (const [name, grouping] of Object.entries<Grouping>({ ...domains })) {
    if (typeof grouping === "number") {
      if (!Number.isSafeInteger(grouping) || grouping < 1) {
        throw new TriremeError("CLUSTER", `${name} of ${grouping} hosts: use an integer from 1 up`);
      }
    } else if (grouping.length !== hosts) {
      throw new TriremeError(
        "CLUSTER",
        `${name} is given for ${grouping.length} hosts, but the cluster has ${hosts}`,
      );
    }
  }
  return domains;
}

/** Hosts of a ToR set and a pod, as the fabric's sizes have them. */
function fabricDomains({ shape }: Fabric, nics: number): { torSet?: number; pod?: number } {
  switch (shape.kind) {
    case "clos": {
      const [leaf, second, third] = shape.levels;
      // On rails a set's leaves are as many as the host has NICs, and its hosts one leaf's ports.
      const torSet = Math.max(1, Math.floor(leaf!.children / (shape.rails ? 1 : nics)));
      if (!second || !third) return { torSet };
      const sets = shape.rails ? Math.max(1, Math.floor(second.children / nics)) : second.children;
      return { torSet, pod: torSet * sets };
    }
    case "dragonfly": {
      const torSet = Math.max(1, Math.floor(shape.ports / nics));
      return { torSet, pod: Math.max(1, Math.floor((shape.ports * shape.routers) / nics)) };
    }
    case "torus":
    case "explicit":
      return {};
  }
}

/**
 * The number of a device's domain of some kind.
 * @throws TriremeError "DEVICE" when the cluster has no such device.
 */
export function domainOf(cluster: Cluster, device: number, kind: DomainKind): number {
  const host = hostIndex(cluster, device);
  switch (kind) {
    case "accelerator":
      return device;
    case "host":
      return host;
    case "rack":
      return groupNumber(cluster.domains.rack, host);
    case "tor-set":
      return groupNumber(cluster.domains.torSet, host);
    case "pod":
      return groupNumber(cluster.domains.pod, host);
    case "power-feed":
      return groupNumber(cluster.domains.powerFeed, host);
  }
}

/** All domains of a device, by kind. */
export function domainsOf(cluster: Cluster, device: number): Readonly<Record<DomainKind, number>> {
  return {
    accelerator: device,
    host: domainOf(cluster, device, "host"),
    rack: domainOf(cluster, device, "rack"),
    "tor-set": domainOf(cluster, device, "tor-set"),
    pod: domainOf(cluster, device, "pod"),
    "power-feed": domainOf(cluster, device, "power-feed"),
  };
}

/** The devices of a domain, ascending: what goes when it fails. Empty when there is no such domain. */
export function devicesIn(cluster: Cluster, kind: DomainKind, domain: number): number[] {
  const found: number[] = [];
  for (let device = 0; device < cluster.devices; device++) {
    if (domainOf(cluster, device, kind) === domain) found.push(device);
  }
  return found;
}

function groupNumber(grouping: Grouping, host: number): number {
  return typeof grouping === "number" ? Math.floor(host / grouping) : grouping[host]!;
}

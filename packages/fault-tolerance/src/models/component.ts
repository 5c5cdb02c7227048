/**
 * Where faults strike: the parts of a cluster that fail one by one, numbered, and the hosts that go
 * with each. Parts are counted and found by arithmetic, so that nothing grows with the cluster.
 */
import { TriremeError } from "@trireme/core";
import { type Cluster, type Grouping, hostIndex, nicsOf } from "@trireme/topology";

/** A part inside a host, a domain of hosts that fail together, or the whole job at once. */
export type Component =
  | "accelerator"
  | "nic"
  | "host"
  | "rack"
  | "tor-set"
  | "pod"
  | "power-feed"
  | "job";

export interface Units {
  readonly component: Component;
  /** How many there are in the cluster. */
  readonly count: number;
  /** Hosts that unit i takes with it, ascending; none for the job. */
  readonly hosts: (unit: number) => readonly number[];
}

/**
 * The units of a component. A domain given as a list of every host's number is indexed once, in time
 * that grows with the hosts; all else takes constant time.
 */
export function unitsOf(cluster: Cluster, component: Component): Units {
  switch (component) {
    case "accelerator":
      return {
        component,
        count: cluster.devices,
        hosts: (unit) => [hostIndex(cluster, unit)],
      };
    case "nic":
      return nicUnits(cluster);
    case "host":
      return { component, count: cluster.hosts, hosts: (unit) => [unit] };
    case "rack":
      return domainUnits(component, cluster.hosts, cluster.domains.rack);
    case "tor-set":
      return domainUnits(component, cluster.hosts, cluster.domains.torSet);
    case "pod":
      return domainUnits(component, cluster.hosts, cluster.domains.pod);
    case "power-feed":
      return domainUnits(component, cluster.hosts, cluster.domains.powerFeed);
    case "job":
      return { component, count: 1, hosts: () => [] };
  }
}

function nicUnits(cluster: Cluster): Units {
  const { pools } = cluster;
  const last = pools.at(-1)!;
  return {
    component: "nic",
    count: last.firstNic + last.hosts * nicsOf(last.host),
    hosts: (unit) => {
      const pool = pools.findLast((each) => each.firstNic <= unit)!;
      return [pool.firstHost + Math.floor((unit - pool.firstNic) / nicsOf(pool.host))];
    },
  };
}

function domainUnits(component: Component, hosts: number, grouping: Grouping): Units {
  if (typeof grouping === "number") {
    return {
      component,
      count: Math.ceil(hosts / grouping),
      hosts: (unit) => {
        const first = unit * grouping;
        const length = Math.min(grouping, hosts - first);
        return Array.from({ length }, (_, i) => first + i);
      },
    };
  }
  const members = new Map<number, number[]>();
  for (let host = 0; host < hosts; host++) {
    const domain = grouping[host]!;
    const known = members.get(domain);
    if (known) known.push(host);
    else members.set(domain, [host]);
  }
  const groups = [...members.values()];
  return { component, count: groups.length, hosts: (unit) => groups[unit]! };
}

/** Refuses a component that the cluster has none of: it could never strike. */
export function checkUnits(units: Units, source: string): void {
  if (units.count < 1) {
    throw new TriremeError(
      "FAULTS",
      `source ${source}: the cluster has ${units.count} units of ${units.component}; it needs 1`,
    );
  }
}

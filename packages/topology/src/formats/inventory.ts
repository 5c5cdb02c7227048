/** Hosts as a scheduler lists them, and the cluster that they make. */
import { TriremeError, nearestName } from "@trireme/core";
import { type Cluster, defineCluster } from "../cluster.ts";
import type { Host } from "../host.ts";

export interface InventoryHost {
  readonly name: string;
  /** What the scheduler calls the accelerator: a Gres type, a product label. */
  readonly accelerator: string | undefined;
  readonly accelerators: number;
  /** Takes work at present. */
  readonly ready: boolean;
  readonly rack?: string;
  readonly zone?: string;
}

export interface InventoryClusterOptions {
  readonly name?: string;
  /** Our host for each accelerator of the scheduler's. */
  readonly hosts: Readonly<Record<string, Host | string>>;
  /** Leaves out hosts that take no work; they are in when left out. */
  readonly readyOnly?: boolean;
}

export interface InventoryCluster {
  readonly cluster: Cluster;
  /** The scheduler's name of every host of the cluster, in its order. */
  readonly names: readonly string[];
}

/**
 * A cluster of a scheduler's hosts that have accelerators, equal ones in one pool, otherwise in the
 * order of the list. Racks become failure domains where every host has one, zones pods.
 * @throws TriremeError "CLUSTER" when no host is left, an accelerator has no host of ours, or its
 * count is another.
 */
export function clusterFromInventory(
  inventory: readonly InventoryHost[],
  options: InventoryClusterOptions,
): InventoryCluster {
  const taken = inventory.filter((h) => h.accelerators > 0 && (h.ready || !options.readyOnly));
  const kinds = new Map<string, InventoryHost[]>();
  for (const host of taken) {
    const kind = host.accelerator ?? "";
    if (!Object.hasOwn(options.hosts, kind)) {
      const nearest = nearestName(kind, Object.keys(options.hosts));
      throw new TriremeError(
        "CLUSTER",
        `host ${host.name} has accelerators "${kind}", for which no host is given${nearest ? `; did you mean "${nearest}"?` : ""}`,
      );
    }
    const group = kinds.get(kind);
    if (group) group.push(host);
    else kinds.set(kind, [host]);
  }
  const ordered = [...kinds.values()].flat();
  if (ordered.length === 0) {
    throw new TriremeError(
      "CLUSTER",
      `none of ${inventory.length} hosts has accelerators${options.readyOnly ? " and is ready" : ""}`,
    );
  }
  const domain = (key: "rack" | "zone"): number[] | undefined => {
    if (!ordered.every((h) => h[key] !== undefined)) return undefined;
    const numbers = new Map<string, number>();
    return ordered.map((h) => {
      const label = h[key]!;
      if (!numbers.has(label)) numbers.set(label, numbers.size);
      return numbers.get(label)!;
    });
  };
  const [rack, pod] = [domain("rack"), domain("zone")];
  const cluster = defineCluster({
    ...(options.name !== undefined && { name: options.name }),
    pools: [...kinds].map(([kind, members]) => ({
      host: options.hosts[kind]!,
      hosts: members.length,
    })),
    domains: { ...(rack && { rack }), ...(pod && { pod }) },
  });
  for (const [i, pool] of cluster.pools.entries()) {
    const odd = [...kinds.values()][i]!.find((h) => h.accelerators !== pool.host.accelerators);
    if (odd) {
      throw new TriremeError(
        "CLUSTER",
        `host ${odd.name} has ${odd.accelerators} accelerators, but ${pool.host.name} has ${pool.host.accelerators}`,
      );
    }
  }
  return { cluster, names: ordered.map((h) => h.name) };
}

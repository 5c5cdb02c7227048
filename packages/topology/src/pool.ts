/** A run of equal hosts in a cluster, and which of them a device belongs to. */
import { TriremeError } from "@trireme/core";
import type { Host } from "./host.ts";

export interface Pool {
  readonly host: Host;
  readonly hosts: number;
  /** First host, first device and first NIC of the pool, counted over the cluster. */
  readonly firstHost: number;
  readonly firstDevice: number;
  readonly firstNic: number;
}

/** The pools of a cluster, in order of their devices. */
export interface Pooled {
  readonly devices: number;
  readonly pools: readonly Pool[];
}

/**
 * The pool that a device is in.
 * @throws TriremeError "DEVICE" when the cluster has no such device.
 */
export function poolOf(cluster: Pooled, device: number): Pool {
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

/**
 * The number of the host that a device sits in, counted over all pools.
 * @throws TriremeError "DEVICE" when the cluster has no such device.
 */
export function hostIndex(cluster: Pooled, device: number): number {
  const pool = poolOf(cluster, device);
  return pool.firstHost + Math.floor((device - pool.firstDevice) / pool.host.accelerators);
}

/** How far the groups of a mesh reach in a cluster: which stay in a host, on a rail, in a pod. */
import { TriremeError } from "@trireme/core";
import { type Cluster, railOf } from "./cluster.ts";
import { type DomainKind, domainKinds, domainOf } from "./domains.ts";
import { type Mesh, axisOf } from "./mesh.ts";

export interface Span {
  /** Domains that hold every group of these axes whole. */
  readonly inside: Readonly<Record<DomainKind, boolean>>;
  /** All members of each group use the NIC of the same number. */
  readonly rail: boolean;
  /** The smallest domain that holds every group, power feeds left aside; or the cluster. */
  readonly smallest: DomainKind | "cluster";
}

export interface SpanOptions {
  /** Device of every rank; rank r is on device r when left out. */
  readonly devices?: ArrayLike<number>;
}

/**
 * How far the groups along some axes reach; every rank is compared with the first of its group, so
 * nothing is stored.
 * @throws TriremeError "MESH" on an unknown axis, or more ranks than devices.
 */
export function spanOf(
  cluster: Cluster,
  mesh: Mesh,
  axes: string | readonly string[],
  options: SpanOptions = {},
): Span {
  const wanted = typeof axes === "string" ? [axes] : axes;
  for (const name of wanted) axisOf(mesh, name);
  const devices = options.devices?.length ?? cluster.devices;
  if (mesh.ranks > devices) {
    throw new TriremeError(
      "MESH",
      `the mesh has ${mesh.ranks} ranks, but there are ${devices} devices`,
    );
  }
  const deviceOf = (rank: number): number => options.devices?.[rank] ?? rank;
  const inside: Record<DomainKind, boolean> = {
    accelerator: true,
    host: true,
    rack: true,
    "tor-set": true,
    pod: true,
    "power-feed": true,
  };
  let rail = true;
  for (let rank = 0; rank < mesh.ranks; rank++) {
    const first = firstOf(mesh, rank, wanted);
    if (first === rank) continue;
    const [a, b] = [deviceOf(rank), deviceOf(first)];
    for (const kind of domainKinds) {
      inside[kind] &&= domainOf(cluster, a, kind) === domainOf(cluster, b, kind);
    }
    rail &&= railOf(cluster, a) === railOf(cluster, b);
  }
  return {
    inside,
    rail,
    smallest: domainKinds.find((kind) => kind !== "power-feed" && inside[kind]) ?? "cluster",
  };
}

/** The lowest rank of the group of `rank` along `axes`. */
function firstOf(mesh: Mesh, rank: number, axes: readonly string[]): number {
  let first = 0;
  let stride = 1;
  let rest = rank;
  for (const { name, size } of mesh.axes) {
    const at = rest % size;
    rest = (rest - at) / size;
    if (!axes.includes(name)) first += at * stride;
    stride *= size;
  }
  return first;
}

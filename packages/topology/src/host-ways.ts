/** Ways inside a host and out of it: between two of its devices, and to a device's NIC. */
import type { Host } from "./host.ts";
import { type Interior, linkInside, nearestNics, partsOf } from "./interior.ts";
import type { Link } from "./link.ts";

/** Network ports of a host. */
export function nicsOf(host: Host): number {
  const counted = host.interior ? ownersOf(host.interior).count : 0;
  return counted || (host.nics ?? host.accelerators);
}

/** The NIC that a device uses: the nearest, dealt out in turn where several devices share several. */
export function nicOf(host: Host, device: number): number {
  const near = host.interior && ownersOf(host.interior).nics[device];
  return near ?? Math.floor((device * nicsOf(host)) / host.accelerators);
}

/** The way between two devices of a host. */
export function pairLink(host: Host, a: number, b: number): Link {
  if (!host.interior) return host.link;
  return pairsOf(host.interior)[a * host.accelerators + b] ?? host.link;
}

// What is searched in an interior is kept: the searches are slow beside what asks for them.
const knownPairs = new WeakMap<Interior, readonly (Link | undefined)[]>();
const knownOwners = new WeakMap<Interior, NicOwners>();

/** The way of every pair, row by row. */
function pairsOf(interior: Interior): readonly (Link | undefined)[] {
  const known = knownPairs.get(interior);
  if (known) return known;
  const devices = partsOf(interior, "accelerator").length;
  const pairs: (Link | undefined)[] = [];
  for (let a = 0; a < devices; a++) {
    for (let b = 0; b < devices; b++) pairs.push(a === b ? undefined : linkInside(interior, a, b));
  }
  knownPairs.set(interior, pairs);
  return pairs;
}

interface NicOwners {
  readonly count: number;
  /** NIC of each device; undefined where the host has none. */
  readonly nics: readonly (number | undefined)[];
}

function ownersOf(interior: Interior): NicOwners {
  const known = knownOwners.get(interior);
  if (known) return known;
  const users = new Map<string, number>();
  const nics = partsOf(interior, "accelerator").map((_, device) => {
    const near = nearestNics(interior, device);
    const turn = users.get(near.join()) ?? 0;
    users.set(near.join(), turn + 1);
    return near[turn % near.length];
  });
  const owners = { count: partsOf(interior, "nic").length, nics };
  knownOwners.set(interior, owners);
  return owners;
}

/** Ways inside a host and out of it: between two of its devices, and to a device's NIC. */
import type { Host } from "./host.ts";
import { type Interior, linkInside, nearestNics, partsOf } from "./interior.ts";
import type { Link } from "./link.ts";

/** Network ports of a host. */
export function nicsOf(host: Host): number {
  const counted = host.interior ? waysOf(host.interior).nicCount : 0;
  return counted || (host.nics ?? host.accelerators);
}

/** The NIC that a device uses: the nearest, dealt out in turn where several devices share several. */
export function nicOf(host: Host, device: number): number {
  const near = host.interior && waysOf(host.interior).nics[device];
  return near ?? Math.floor((device * nicsOf(host)) / host.accelerators);
}

/** The way between two devices of a host. */
export function pairLink(host: Host, a: number, b: number): Link {
  if (!host.interior) return host.link;
  const { devices, pairs } = waysOf(host.interior);
  return pairs[a * devices + b] ?? host.link;
}

/** Pairs and NICs of an interior, found once: the searches are slow beside what asks for them. */
interface Ways {
  readonly devices: number;
  readonly pairs: readonly (Link | undefined)[];
  /** NIC of each device. */
  readonly nics: readonly (number | undefined)[];
  readonly nicCount: number;
}

const known = new WeakMap<Interior, Ways>();

function waysOf(interior: Interior): Ways {
  const before = known.get(interior);
  if (before) return before;
  const devices = partsOf(interior, "accelerator").length;
  const pairs: (Link | undefined)[] = [];
  const nics: (number | undefined)[] = [];
  const users = new Map<string, number>();
  for (let a = 0; a < devices; a++) {
    for (let b = 0; b < devices; b++) pairs.push(a === b ? undefined : linkInside(interior, a, b));
    const near = nearestNics(interior, a);
    const turn = users.get(near.join()) ?? 0;
    users.set(near.join(), turn + 1);
    nics.push(near[turn % near.length]);
  }
  const ways = { devices, pairs, nics, nicCount: partsOf(interior, "nic").length };
  known.set(interior, ways);
  return ways;
}

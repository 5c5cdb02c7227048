/**
 * What a rank sends at once inside a scale-up domain whose devices are wired to each other, where no library's own figures
 * are known. In a host: the wires to all others where each pair has one (seven among the eight Gaudis of a host, one between two of them),
 * else as many rings as share no wire. On a torus of many hosts (TPUs): both ways along each axis that the group lies on, as few axes as hold it (Austin et al., How to
 * scale your model, 2025, chapter 3: a gather over several axes has the links of all of them).
 */
import type { BytesPerSecond } from "@trireme/core";
import type { Interior } from "@trireme/topology";
import type { Extent } from "./extent.ts";
import { ringsInside } from "./rings.ts";

/** Bytes a second of one rank, one direction; the link of a pair where nothing else is known. */
export function wiredBus(extent: Extent): BytesPerSecond {
  const { host, inside, link } = extent;
  if (host.interior === undefined) return link.bandwidth;
  if (inside.some((device) => device >= host.accelerators)) {
    return 2 * torusAxes(extent) * link.bandwidth;
  }
  const all = wiresToAll(host.interior, inside);
  if (all > 0) return all;
  const rings = ringsInside(host.interior, inside);
  return rings === undefined || rings.rings === 0
    ? link.bandwidth
    : Math.max(link.bandwidth, rings.rings * rings.bandwidth);
}

/** The wires of the least wired device to all others; 0 where some pair has none of its own. */
function wiresToAll({ parts, wires }: Interior, devices: readonly number[]): BytesPerSecond {
  const accelerators = parts.flatMap((part, i) => (part.kind === "accelerator" ? [i] : []));
  const members = devices.map((device) => accelerators[device]!);
  let least = Infinity;
  for (const member of members) {
    let sum = 0;
    for (const other of members) {
      if (other === member) continue;
      const wire = wires.find(
        ({ a, b }) => (a === member && b === other) || (a === other && b === member),
      );
      if (wire === undefined) return 0;
      sum += wire.link.bandwidth;
    }
    least = Math.min(least, sum);
  }
  return least;
}

/** The same where each rank sends a part to every other: on a torus parts pass through those between, a quarter of each ring on the average. */
export function wiredExchangeBus(extent: Extent): BytesPerSecond {
  const { host, inside, most } = extent;
  const bus = wiredBus(extent);
  if (host.interior === undefined || inside.every((device) => device < host.accelerators)) {
    return bus;
  }
  const axes = torusAxes(extent);
  return bus / Math.max(1, (axes * most ** (1 / axes)) / 4);
}

/** Axes of the torus that the devices of a domain lie on: the fewest that hold them, of sides that are alike. */
function torusAxes({ host, most, link }: Extent): number {
  const axes = Math.max(1, Math.round(host.accelerator.scaleUp / link.bandwidth / 2));
  const side = (host.accelerators * (host.scaleUpHosts ?? 1)) ** (1 / axes);
  return Math.min(axes, Math.max(1, Math.ceil(Math.log(most) / Math.log(side) - 1e-9)));
}

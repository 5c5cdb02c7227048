/** One machine with one operating system, the devices in it, and its way out. */
import { TriremeError, nearestName } from "@trireme/core";
import { type Accelerator, accelerator as acceleratorNamed } from "./accelerator.ts";
import { hosts } from "./catalogue/hosts.ts";
import { type Interior, defineInterior, linkInside, partsOf } from "./interior.ts";
import type { Link } from "./link.ts";

export interface Host {
  readonly name: string;
  readonly accelerator: Accelerator;
  /** Devices in the host. */
  readonly accelerators: number;
  /** How many of its devices compute at full speed at once: all, but of a CPU host its cores. */
  readonly concurrency: number;
  /** Between two devices of the host; where pairs differ, the slowest. */
  readonly link: Link;
  /** One device's share of the host's network ports. */
  readonly network: Link;
  /** Hosts that one scale-up fabric joins (18 trays of an NVL72 rack); 1 when left out. */
  readonly scaleUpHosts?: number;
  /** Network ports where no interior counts them; one a device when left out. */
  readonly nics?: number;
  /** Parts and wires; where left out, every pair of devices has `link`. */
  readonly interior?: Interior;
  /** Where the figures come from. */
  readonly source?: string;
}

/** A host of your own. `link` is derived from the interior where there is one. */
export interface HostOptions {
  readonly name: string;
  readonly accelerator: Accelerator | string;
  /** Devices; counted from the interior where there is one. */
  readonly accelerators?: number;
  readonly interior?: Interior;
  /** Between any two devices, where there is no interior. */
  readonly link?: Link;
  /** One device's share of the host's network ports. */
  readonly network: Link;
  /** Network ports, where there is no interior to count them. */
  readonly nics?: number;
  readonly scaleUpHosts?: number;
  readonly source?: string;
}

/**
 * A host from its parts, or from one link for all pairs.
 * @throws TriremeError "HOST" when the parts do not fit together: no accelerators, a count that
 * differs from the interior's, neither interior nor link, or accelerators that nothing joins.
 */
export function defineHost(options: HostOptions): Host {
  const { name, network, scaleUpHosts = 1, source } = options;
  const accelerator =
    typeof options.accelerator === "string"
      ? acceleratorNamed(options.accelerator)
      : options.accelerator;
  const interior = options.interior && defineInterior(options.interior);
  const counted = interior && partsOf(interior, "accelerator").length;
  const accelerators = options.accelerators ?? counted ?? 0;
  if (!Number.isSafeInteger(accelerators) || accelerators < 1) {
    throw new TriremeError("HOST", `${name} has ${accelerators} accelerators; use 1 or more`);
  }
  if (counted !== undefined && counted !== accelerators) {
    throw new TriremeError(
      "HOST",
      `${name}: ${accelerators} accelerators stated, but ${counted} in the interior`,
    );
  }
  if (!Number.isSafeInteger(scaleUpHosts) || scaleUpHosts < 1) {
    throw new TriremeError("HOST", `${name}: scaleUpHosts is ${scaleUpHosts}; use 1 or more`);
  }
  if (options.nics !== undefined && !(Number.isSafeInteger(options.nics) && options.nics >= 1)) {
    throw new TriremeError("HOST", `${name} has ${options.nics} NICs; use 1 or more`);
  }
  const link = options.link ?? (interior && slowestPair(name, interior, accelerators));
  if (!link) throw new TriremeError("HOST", `${name} has neither an interior nor a link`);
  return {
    name,
    accelerator,
    accelerators,
    concurrency: accelerators,
    link,
    network,
    ...(scaleUpHosts > 1 && { scaleUpHosts }),
    ...(options.nics !== undefined && { nics: options.nics }),
    ...(interior && { interior }),
    ...(source !== undefined && { source }),
  };
}

/**
 * The host of the catalogue with this name.
 * @throws TriremeError "HOST" with the nearest known name.
 */
export function host(name: string): Host {
  const found = hosts.find((h) => h.name === name);
  if (found) return found;
  const names = hosts.map((h) => h.name);
  const nearest = nearestName(name, names);
  const hint = nearest ? `did you mean "${nearest}"?` : `known: ${names.join(", ")}`;
  throw new TriremeError("HOST", `no host "${name}"; ${hint}`);
}

function slowestPair(name: string, interior: Interior, accelerators: number): Link | undefined {
  let slowest: Link | undefined;
  for (let a = 0; a < accelerators; a++) {
    for (let b = a + 1; b < accelerators; b++) {
      const link = linkInside(interior, a, b);
      if (!link) {
        throw new TriremeError("HOST", `${name}: nothing joins accelerators ${a} and ${b}`);
      }
      if (!slowest || link.bandwidth < slowest.bandwidth) slowest = link;
    }
  }
  // A host of one accelerator has no pair: its way to the processor stands for it.
  const own = partsOf(interior, "accelerator")[0];
  return slowest ?? interior.wires.find((w) => w.a === own || w.b === own)?.link;
}

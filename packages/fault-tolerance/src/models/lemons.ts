/**
 * Lemon hosts: a few hosts that fail again and again, and come back from every check as healthy
 * (RSC, HPCA'25: 1.2 % of RSC-1, in 13 % of its daily jobs).
 */
import { TriremeError, createRng } from "@trireme/core";
import { type Cluster, nicsOf } from "@trireme/topology";
import type { Units } from "./component.ts";
import type { FailureLaw } from "./law.ts";
import type { FaultSource } from "./source.ts";

export interface Lemons {
  /** Hosts, ascending. */
  readonly hosts: readonly number[];
  /** How many times as often their accelerators, NICs and hosts fail. */
  readonly factor: number;
}

/**
 * A share of the hosts, drawn without regard to place; at least one where the share is above 0.
 * @throws TriremeError "LEMONS" when the share is not in [0, 1] or the factor is below 1.
 */
export function drawLemons(cluster: Cluster, share: number, factor: number, seed: number): Lemons {
  if (!(share >= 0 && share <= 1)) {
    throw new TriremeError(
      "LEMONS",
      `share ${share} of lemon hosts is not in [0, 1]; RSC-1: 0.012`,
    );
  }
  checkFactor(factor);
  const count = share === 0 ? 0 : Math.max(1, Math.round(share * cluster.hosts));
  const rng = createRng(seed);
  // Floyd's sample: as many draws as lemons (CACM 30(9), 1987).
  const hosts = new Set<number>();
  for (let last = cluster.hosts - count; last < cluster.hosts; last++) {
    const host = rng.integer(last + 1);
    hosts.add(hosts.has(host) ? last : host);
  }
  return { hosts: [...hosts].toSorted((a, b) => a - b), factor };
}

/** A part of a source's units that fail by one law, renumbered from 0. */
export interface LemonPart {
  readonly count: number;
  readonly law: FailureLaw;
  readonly unit: (i: number) => number;
}

/** The healthy units and the lemons' ones, where the source strikes parts of hosts. */
export function lemonPopulations(
  cluster: Cluster,
  source: FaultSource,
  units: Units,
  lemons: Lemons | undefined,
): LemonPart[] {
  const { component, law } = source;
  const all = { count: units.count, law, unit: (i: number): number => i };
  if (!lemons || lemons.hosts.length === 0) return [all];
  checkLemons(cluster, lemons);
  if (component !== "accelerator" && component !== "nic" && component !== "host") return [all];
  const marked = lemons.hosts.flatMap((host) => unitsOfHost(cluster, component, host));
  const parts = [
    { count: units.count - marked.length, law, unit: (i: number) => unmarked(marked, i) },
    { count: marked.length, law: hastened(law, lemons.factor), unit: (i: number) => marked[i]! },
  ];
  return parts.filter((part) => part.count > 0);
}

function checkLemons(cluster: Cluster, { hosts, factor }: Lemons): void {
  checkFactor(factor);
  for (const [i, host] of hosts.entries()) {
    if (Number.isInteger(host) && host > (hosts[i - 1] ?? -1) && host < cluster.hosts) continue;
    throw new TriremeError(
      "LEMONS",
      `lemon ${i} is host ${host}: use hosts of 0..${cluster.hosts - 1}, ascending, each once`,
    );
  }
}

function checkFactor(factor: number): void {
  if (factor >= 1 && factor < Infinity) return;
  throw new TriremeError("LEMONS", `lemons fail ${factor} times as often: use 1 or more`);
}

function unitsOfHost(cluster: Cluster, component: "accelerator" | "nic" | "host", host: number) {
  if (component === "host") return [host];
  const pool = cluster.pools.findLast((each) => each.firstHost <= host)!;
  const device = component === "accelerator";
  const each = device ? pool.host.accelerators : nicsOf(pool.host);
  const first = (device ? pool.firstDevice : pool.firstNic) + (host - pool.firstHost) * each;
  return Array.from({ length: each }, (_, i) => first + i);
}

/** Number i of the units that are not marked (ascending): skips the marked ones below, by halving. */
function unmarked(marked: readonly number[], i: number): number {
  let [from, to] = [0, marked.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    // Below marked[middle] stand marked[middle] − middle units that are not marked.
    if (marked[middle]! - middle <= i) from = middle + 1;
    else to = middle;
  }
  return i + from;
}

/** The law with time running `factor` times as fast. */
function hastened(law: FailureLaw, factor: number): FailureLaw {
  switch (law.kind) {
    case "exponential":
      return { kind: "exponential", mean: law.mean / factor };
    case "weibull":
      return { kind: "weibull", shape: law.shape, scale: law.scale / factor };
    case "bathtub":
      return { kind: "bathtub", laws: law.laws.map((each) => hastened(each, factor)) };
    case "trace":
      return { kind: "trace", times: law.times.map((time) => time / factor) };
  }
}

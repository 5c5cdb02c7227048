/** Fat trees of equal switches, and the single switch, as Clos networks. */
import { type BytesPerSecond, type Seconds, TriremeError } from "@trireme/core";
import { type ClosLevelOptions, closFabric } from "./clos.ts";
import type { Fabric } from "./fabric.ts";

export interface FatTreeOptions {
  readonly name?: string;
  readonly hosts: number;
  /** Network ports of a host; 1 when left out. */
  readonly nics?: number;
  /** Rail-optimised leaves; the host's ports go to one leaf when left out. */
  readonly rails?: boolean;
  /** Ports of every switch (k). */
  readonly radix: number;
  /** Levels of switches, 2 or 3 or more. */
  readonly levels: number;
  /** Down over up of each level but the top, from the hosts; 1 where left out. */
  readonly oversubscription?: readonly number[];
  /** Of one port, one direction. */
  readonly bandwidth: BytesPerSecond;
  readonly latency?: Seconds;
}

/** Names of the levels, from the hosts. */
const names = ["leaf", "spine", "core"];

/**
 * A k-ary fat tree (Leiserson 1985; Al-Fares et al., SIGCOMM 2008, for the commodity form) whose
 * every level keeps its over-subscription; the top has as few switches as the pods allow.
 * @throws TriremeError "FABRIC" when the ports of a switch do not divide in the wanted ratio or the
 * hosts do not fit.
 */
export function fatTreeFabric(options: FatTreeOptions): Fabric {
  const { hosts, nics = 1, rails = false, radix, levels, bandwidth, latency } = options;
  const name = options.name ?? `fat-tree-${radix}`;
  if (!Number.isSafeInteger(radix) || radix < 2 || !Number.isSafeInteger(levels) || levels < 1) {
    throw new TriremeError(
      "FABRIC",
      `${name}: radix ${radix} and ${levels} levels; use a radix from 2 and a level from 1 up`,
    );
  }
  const ratios = options.oversubscription ?? [];
  if (ratios.length > levels - 1) {
    throw new TriremeError(
      "FABRIC",
      `${name}: ${ratios.length} over-subscriptions for ${levels} levels; the top level has none`,
    );
  }
  const timing = latency === undefined ? {} : { latency };
  const down: number[] = [];
  for (let l = 0; l < levels - 1; l++) {
    const ratio = ratios[l] ?? 1;
    const ports = (radix * ratio) / (ratio + 1);
    if (!(ratio > 0) || Math.abs(ports - Math.round(ports)) > 1e-9 || Math.round(ports) >= radix) {
      throw new TriremeError(
        "FABRIC",
        `${name}: ${radix} ports do not divide ${ratio}:1 at level ${l}; nearest is ${nearestRatio(radix, ratio)}`,
      );
    }
    down.push(Math.round(ports));
  }
  down.push(radix);
  const built: ClosLevelOptions[] = [];
  let subtrees = hosts * nics;
  for (let l = 0; l < levels; l++) {
    const level = { name: names[l] ?? `level-${l}`, children: down[l]!, bandwidth, ...timing };
    if (l === 0) {
      built.push(level);
      subtrees = rails ? Math.ceil(hosts / down[0]!) * nics : Math.ceil(subtrees / down[0]!);
      continue;
    }
    const up = radix - down[l - 1]!;
    const meeting = l === levels - 1 ? Math.max(1, subtrees) : down[l]!;
    built.push({ ...level, ...foldTop(up, meeting, radix, l === levels - 1) });
    subtrees = Math.ceil(subtrees / down[l]!);
  }
  return closFabric({ name, hosts, nics, rails, levels: built });
}

/** One switch with a port for each endpoint. */
export function singleSwitchFabric(options: {
  readonly name?: string;
  readonly hosts: number;
  readonly nics?: number;
  readonly bandwidth: BytesPerSecond;
  readonly latency?: Seconds;
}): Fabric {
  const { name = "switch", hosts, nics = 1, bandwidth, latency } = options;
  const level = { name: "switch", children: hosts * nics, bandwidth };
  const levels = [latency === undefined ? level : { ...level, latency }];
  return closFabric({ name, hosts, nics, rails: false, levels });
}

/**
 * How `up` cables of each of `children` switches meet at a level of `radix` ports: at the top the
 * fewest parents whose ports suffice, with parallel cables; below it one cable to each.
 */
export function foldTop(
  up: number,
  children: number,
  radix: number,
  top: boolean,
): { readonly parents: number; readonly links: number } {
  if (!top) return { parents: up, links: 1 };
  let links = 1;
  for (let p = 1; p <= up; p++) if (up % p === 0 && p * children <= radix) links = p;
  return { parents: up / links, links };
}

function nearestRatio(radix: number, ratio: number): string {
  const wanted = ratio > 0 ? (radix * ratio) / (ratio + 1) : radix / 2;
  const ports = Math.min(radix - 1, Math.max(1, Math.round(wanted)));
  return `${ports}:${radix - ports}`;
}

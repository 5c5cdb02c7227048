/** Folded Clos networks of any height, built from the sizes of their levels. */
import { type BytesPerSecond, type Seconds, TriremeError, us } from "@trireme/core";
import type { ClosLevel, ClosShape } from "./clos-shape.ts";
import { leafOf } from "./clos-shape.ts";
import { type Fabric, type Layer, createFabric } from "./fabric.ts";
import { GraphBuilder } from "./graph.ts";

/** Time through one switch and its cable, where a fabric does not state its own. */
export const hopLatency: Seconds = us(0.6);

export interface ClosLevelOptions {
  readonly name: string;
  /** Ports down of one switch, counted in children (at the first level: host ports). */
  readonly children: number;
  /** Switches of this level that each switch below has cables to; not at the first level. */
  readonly parents?: number;
  /** Cables to each of them; 1 when left out. */
  readonly links?: number;
  /** Of one cable down, one direction. */
  readonly bandwidth: BytesPerSecond;
  readonly latency?: Seconds;
}

export interface ClosOptions {
  readonly name: string;
  readonly hosts: number;
  /** Network ports of a host. */
  readonly nics: number;
  /**
   * Rail-optimised: port i of every host of a set goes to the i-th leaf of the set, and `children`
   * of the first level counts hosts. Otherwise ports fill leaves in order.
   */
  readonly rails: boolean;
  /** From the hosts up; the last is the top and may have any number of children. */
  readonly levels: readonly ClosLevelOptions[];
}

/**
 * A folded Clos network. A last pod or leaf that the hosts do not fill keeps its switches.
 * @throws TriremeError "FABRIC" when a count is not a positive integer, a bandwidth is not positive,
 * or the top level has fewer ports than there are subtrees below.
 */
export function closFabric(options: ClosOptions): Fabric {
  const { name, hosts, nics, rails } = options;
  checkCount(name, "hosts", hosts);
  checkCount(name, "nics", nics);
  if (options.levels.length === 0)
    throw new TriremeError("FABRIC", `${name}: no levels of switches`);
  const endpoints = hosts * nics;
  const levels: ClosLevel[] = [];
  let firstSwitch = endpoints;
  let firstCable = 0;
  for (const [l, o] of options.levels.entries()) {
    const { children, parents = 1, links = 1 } = o;
    for (const [what, n] of Object.entries({ children, parents, links })) {
      checkCount(`${name}, level ${o.name}`, what, n);
    }
    if (!(o.bandwidth > 0)) {
      throw new TriremeError(
        "FABRIC",
        `${name}, level ${o.name}: bandwidth ${o.bandwidth} B/s; it must be above 0`,
      );
    }
    const below = levels[l - 1];
    if (!below && parents * links !== 1) {
      throw new TriremeError(
        "FABRIC",
        `${name}: a host port has one cable, not ${parents} x ${links}`,
      );
    }
    const childNodes = below ? below.subtrees * below.copies : endpoints;
    const subtrees = below
      ? Math.ceil(below.subtrees / children)
      : rails
        ? Math.ceil(hosts / children) * nics
        : Math.ceil(endpoints / children);
    const copies = (below?.copies ?? 1) * parents;
    levels.push({ children, parents, links, subtrees, copies, firstSwitch, firstCable });
    firstSwitch += subtrees * copies;
    firstCable += childNodes * parents * links;
  }
  const top = levels.at(-1)!;
  if (top.subtrees > 1) {
    const [low, ...high] = options.levels.map((o) => o.children);
    const leaves = high.reduce((product, children) => product * children, 1);
    const fit = Math.floor((rails ? Math.floor(leaves / nics) * nics : leaves) * (low! / nics));
    throw new TriremeError(
      "FABRIC",
      `${name}: ${hosts} hosts of ${nics} ports do not fit under the top level ${options.levels.at(-1)!.name}; at most ${fit} do, or add a level`,
    );
  }
  const shape: ClosShape = { kind: "clos", endpoints, nics, rails, levels };
  const graph = new GraphBuilder(endpoints, firstSwitch - endpoints, firstCable);
  for (const [l, level] of levels.entries()) {
    const { bandwidth, latency = hopLatency } = options.levels[l]!;
    const below = levels[l - 1];
    if (!below) {
      const { a, b } = graph.addRun(endpoints, bandwidth, latency);
      for (let e = 0; e < endpoints; e++) {
        a[e] = e;
        b[e] = level.firstSwitch + leafOf(shape, e);
      }
      continue;
    }
    const { parents, links, copies, children } = level;
    const { a, b } = graph.addRun(
      below.subtrees * below.copies * parents * links,
      bandwidth,
      latency,
    );
    let cable = 0;
    for (let subtree = 0; subtree < below.subtrees; subtree++) {
      const home = level.firstSwitch + Math.trunc(subtree / children) * copies;
      for (let copy = 0; copy < below.copies; copy++) {
        const child = below.firstSwitch + subtree * below.copies + copy;
        for (let parent = 0; parent < parents; parent++) {
          for (let i = 0; i < links; i++) {
            a[cable] = child;
            b[cable++] = home + copy * parents + parent;
          }
        }
      }
    }
  }
  const layers: Layer[] = levels.map((level, l) => ({
    name: options.levels[l]!.name,
    firstSwitch: level.firstSwitch,
    switches: level.subtrees * level.copies,
  }));
  return createFabric(name, graph.finish(), shape, layers);
}

/**
 * Over-subscription of a level: bandwidth down of one of its switches over its bandwidth up. 1 is
 * non-blocking; the top level has no way up and gives 0.
 */
export function oversubscription(fabric: Fabric, level: number): number {
  const { shape, graph } = fabric;
  const below = shape.kind === "clos" ? shape.levels[level] : undefined;
  if (shape.kind !== "clos" || !below) {
    throw new TriremeError("FABRIC", `${fabric.name} has no Clos level ${level}`);
  }
  const up = shape.levels[level + 1];
  if (!up) return 0;
  const down = below.children * below.links * graph.bandwidth[below.firstCable]!;
  return down / (up.parents * up.links * graph.bandwidth[up.firstCable]!);
}

function checkCount(where: string, what: string, n: number): void {
  if (!Number.isSafeInteger(n) || n < 1) {
    throw new TriremeError("FABRIC", `${where}: ${what} is ${n}; use an integer from 1 up`);
  }
}

/** Routes of flows through a fabric: every hop is a choice among the links of shortest paths. */
import { TriremeError } from "@trireme/core";
import { leafOf, slotOf } from "../fabric/clos-shape.ts";
import { type Fabric, capacityOf, layerOf } from "../fabric/fabric.ts";
import { targetOf } from "../fabric/graph.ts";
import { Detours } from "./detours.ts";
import { ecmpChoice, tupleHash } from "./ecmp.ts";
import { mostLinks, nextLinks } from "./next-links.ts";

/** Flows in columns: endpoints, and what else the hash sees (a port or queue pair; 0 without). */
export interface Flows {
  readonly from: ArrayLike<number>;
  readonly to: ArrayLike<number>;
  readonly key?: ArrayLike<number>;
}

/**
 * How a switch chooses: by hash of the tuple; the least loaded link at the time, flows coming in
 * order; or by the destination alone (D-mod-K, Zahavi 2010), so that every destination has its rail
 * through the fabric and a full permutation of ports meets no collision.
 *
 * On a dragonfly two more, for traffic that shortest paths press through one bundle of cables (Kim,
 * Dally, Scott, Abts 2008, section 4): "valiant" takes each flow between two groups by a third one,
 * drawn by the hash; "ugal" weighs that detour against the shortest way, hops times load, and takes
 * the better one at the time, flows coming in order.
 */
export type RoutingPolicy =
  | { readonly kind: "ecmp" | "adaptive" | "valiant" | "ugal"; readonly seed?: number }
  | { readonly kind: "static" };

/** Links of flow i: `links[offsets[i]]` … `links[offsets[i + 1] - 1]`, from source to destination. */
export interface Routes {
  readonly flows: number;
  readonly offsets: Int32Array;
  readonly links: Int32Array;
}

/** The links of one flow; a view. */
export function routeOf(routes: Routes, flow: number): Int32Array {
  return routes.links.subarray(routes.offsets[flow], routes.offsets[flow + 1]);
}

/**
 * Routes flows in order. A flow from an endpoint to itself has no links.
 * @throws TriremeError "ROUTE" on an unknown endpoint, columns of different lengths, two endpoints
 * that no working cable joins, or a policy of dragonflies on another fabric.
 */
export function routeFlows(
  fabric: Fabric,
  flows: Flows,
  policy: RoutingPolicy = { kind: "ecmp" },
): Routes {
  const { graph } = fabric;
  const { from, to, key } = flows;
  const count = from.length;
  if (to.length !== count || (key && key.length !== count)) {
    throw new TriremeError(
      "ROUTE",
      `flow columns of different lengths: from ${count}, to ${to.length}, key ${key?.length ?? "left out"}`,
    );
  }
  const { kind } = policy;
  const detours = kind === "valiant" || kind === "ugal" ? new Detours(fabric, kind) : undefined;
  const next = nextLinks(fabric);
  const choices = new Int32Array(mostLinks(fabric));
  const offsets = new Int32Array(count + 1);
  let links = new Int32Array(Math.max(16, 6 * count));
  let used = 0;
  const seed = policy.kind === "static" ? 0 : (policy.seed ?? 0);
  const loads =
    kind === "adaptive" || kind === "ugal" ? new Float64Array(2 * graph.cables) : undefined;
  /**
   * Writes the links from `source` to endpoint `target`, or to where they enter `group` (-1: none);
   * returns the node that they reach, or -1 - node where no working link leads on.
   */
  const walk = (source: number, target: number, hash: number, group: number): number => {
    // Locals: a variable of the enclosing function costs a load and a store each hop.
    let end = used;
    let node = source;
    while (node !== target && (group < 0 || detours!.groupOf(node) !== group)) {
      const n = next(node, target, choices);
      if (n === 0) return -1 - node;
      let link: number;
      if (kind === "static") {
        link = choices[n === 1 ? 0 : staticChoice(fabric, node, target, n, choices[0]!)]!;
      } else if (loads) {
        link = leastLoaded(fabric, loads, choices, n, ecmpChoice(hash, node, n));
      } else link = choices[ecmpChoice(hash, node, n)]!;
      if (end === links.length) {
        const grown = new Int32Array(2 * end);
        grown.set(links);
        links = grown;
      }
      links[end++] = link;
      node = targetOf(graph, link);
    }
    used = end;
    return node;
  };
  for (let f = 0; f < count; f++) {
    const [source, target] = [from[f]!, to[f]!];
    checkEndpoint(fabric, source);
    checkEndpoint(fabric, target);
    const hash = kind === "static" ? 0 : tupleHash(seed, source, target, key?.[f] ?? 0);
    const start = used;
    const end = walk(source, target, hash, -1);
    if (end < 0) {
      throw new TriremeError(
        "ROUTE",
        `no way from endpoint ${source} to ${target}: node ${-1 - end} has no working link towards it`,
      );
    }
    const via = detours ? detours.via(source, target, hash) : -1;
    if (detours && via >= 0) {
      const middle = used;
      const entry = walk(source, via, hash, detours.groupOf(via));
      const whole = entry >= 0 && walk(entry, target, hash, -1) === target;
      if (whole && detours.better(loads, links.subarray(start, used), middle - start)) {
        links.copyWithin(start, middle, used);
        used = start + used - middle;
      } else used = middle;
    }
    if (loads) {
      for (let i = start; i < used; i++) loads[links[i]!]! += 1 / capacityOf(fabric, links[i]!);
    }
    offsets[f + 1] = used;
  }
  return { flows: count, offsets, links: links.slice(0, used) };
}

/** The candidate with the fewest flows for its capacity; among equals the next from `start` on. */
function leastLoaded(
  fabric: Fabric,
  loads: Float64Array,
  choices: Int32Array,
  count: number,
  start: number,
): number {
  let best = choices[start]!;
  let least = loads[best]! + 1 / capacityOf(fabric, best);
  for (let i = 1; i < count; i++) {
    const link = choices[(start + i) % count]!;
    const load = loads[link]! + 1 / capacityOf(fabric, link);
    if (load < least) [best, least] = [link, load];
  }
  return best;
}

/**
 * D-mod-K on a Clos: the digits of the destination's number are the ports up of the levels, and the
 * way down takes the parallel cable that the way up would have taken.
 */
function staticChoice(
  fabric: Fabric,
  node: number,
  endpoint: number,
  count: number,
  firstChoice: number,
): number {
  const { shape } = fabric;
  if (shape.kind !== "clos") return endpoint % count;
  const down = firstChoice & 1;
  let rest = leafOf(shape, endpoint) * shape.levels[0]!.children + slotOf(shape, endpoint);
  const digit = layerOf(fabric, node) - down;
  for (let l = 1; l < digit; l++) {
    rest = Math.trunc(rest / (shape.levels[l]!.parents * shape.levels[l]!.links));
  }
  return rest % count;
}

function checkEndpoint(fabric: Fabric, endpoint: number): void {
  if (!(Number.isInteger(endpoint) && endpoint >= 0 && endpoint < fabric.graph.endpoints)) {
    throw new TriremeError(
      "ROUTE",
      `endpoint ${endpoint} is outside the fabric's 0..${fabric.graph.endpoints - 1}`,
    );
  }
}

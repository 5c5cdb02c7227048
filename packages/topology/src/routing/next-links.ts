/**
 * The links that lead from a node to an endpoint on shortest paths. Where every cable works, they
 * follow from the fabric's shape in constant time; where one is down, or the graph is explicit,
 * they follow from distances that are searched once for each destination switch.
 */
import { closNextLinks } from "../fabric/clos-shape.ts";
import { dragonflyNextLinks } from "../fabric/dragonfly.ts";
import { type Fabric, linkStates } from "../fabric/fabric.ts";
import { targetOf } from "../fabric/graph.ts";
import { torusNextLinks } from "../fabric/torus.ts";

/**
 * Writes the links from `node` towards `endpoint` and returns how many; 0 when there is no way or
 * the node is the endpoint.
 */
export type NextLinks = (node: number, endpoint: number, links: Int32Array) => number;

/** Room that a `NextLinks` needs: the most links that leave one node. */
export function mostLinks(fabric: Fabric): number {
  const { first, nodes } = fabric.graph;
  let most = 1;
  for (let n = 0; n < nodes; n++) most = Math.max(most, first[n + 1]! - first[n]!);
  return most;
}

/** The routes of a fabric in its present state. */
export function nextLinks(fabric: Fabric): NextLinks {
  const { shape } = fabric;
  if (shape.kind === "explicit" || fabric.state.includes(down)) return searchedLinks(fabric);
  if (shape.kind === "clos") return (node, to, links) => closNextLinks(shape, node, to, links);
  if (shape.kind === "torus") return (node, to, links) => torusNextLinks(shape, node, to, links);
  return (node, to, links) => dragonflyNextLinks(shape, node, to, links);
}

const down = linkStates.indexOf("down");
const unreachable = 0xffff;
/** Bytes of distances kept before they are dropped and searched anew. */
const cacheLimit = 64e6;

/** Shortest paths over the cables that are not down, by breadth-first search. */
export function searchedLinks(fabric: Fabric): NextLinks {
  const { graph, state } = fabric;
  const { endpoints, nodes, first, out } = graph;
  const switches = nodes - endpoints;
  const cache = new Map<number, Uint16Array>();
  const most = Math.max(1, Math.floor(cacheLimit / (2 * Math.max(1, switches))));
  const queue = new Int32Array(switches);

  /** Switches next to an endpoint, over cables that are not down. */
  const gates = (endpoint: number): number[] => {
    const found = new Set<number>();
    for (let i = first[endpoint]!; i < first[endpoint + 1]!; i++) {
      if (state[out[i]! >> 1] !== down) found.add(targetOf(graph, out[i]!));
    }
    return [...found];
  };

  /** Hops from each switch to the nearest of the endpoint's switches. */
  const distances = (endpoint: number): Uint16Array => {
    const seeds = gates(endpoint);
    // Endpoints of one switch share its distances.
    const key = seeds.length === 1 ? seeds[0]! : endpoint;
    const known = cache.get(key);
    if (known) return known;
    const hops = new Uint16Array(switches).fill(unreachable);
    let [head, tail] = [0, 0];
    for (const s of seeds) {
      hops[s - endpoints] = 0;
      queue[tail++] = s;
    }
    while (head < tail) {
      const node = queue[head++]!;
      const next = hops[node - endpoints]! + 1;
      for (let i = first[node]!; i < first[node + 1]!; i++) {
        const link = out[i]!;
        if (state[link >> 1] === down) continue;
        const to = targetOf(graph, link) - endpoints;
        if (to < 0 || hops[to]! !== unreachable) continue;
        hops[to] = next;
        queue[tail++] = to + endpoints;
      }
    }
    if (cache.size >= most) cache.clear();
    cache.set(key, hops);
    return hops;
  };

  return (node, endpoint, links) => {
    if (node === endpoint) return 0;
    const hops = distances(endpoint);
    const at = node < endpoints ? unreachable : hops[node - endpoints]!;
    let count = 0;
    let least = at === 0 ? -1 : at === unreachable ? unreachable : at - 1;
    for (let i = first[node]!; i < first[node + 1]!; i++) {
      const link = out[i]!;
      if (state[link >> 1] === down) continue;
      const to = targetOf(graph, link);
      const left = to === endpoint ? -1 : to < endpoints ? unreachable : hops[to - endpoints]!;
      // A host with several ports leaves by those that are nearest.
      if (node < endpoints && left < least) [least, count] = [left, 0];
      if (left === least && left !== unreachable) links[count++] = link;
    }
    return count;
  };
}

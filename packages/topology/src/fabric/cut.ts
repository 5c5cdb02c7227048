/**
 * What a fabric carries between two sets of endpoints, whatever the routing: the least capacity of
 * a cut that parts them, found as the largest flow (Dinic 1970). It knows nothing of the shape, so
 * it holds the builders to what they state.
 */
import { type BytesPerSecond, TriremeError } from "@trireme/core";
import { type Fabric, capacities } from "./fabric.ts";
import { sourceOf, targetOf } from "./graph.ts";

/**
 * Capacity from one set of endpoints to another, one direction.
 * @throws TriremeError "FABRIC" on an unknown endpoint, or one on both sides.
 */
export function cutCapacity(
  fabric: Fabric,
  from: Iterable<number>,
  to: Iterable<number>,
): BytesPerSecond {
  const { graph } = fabric;
  const side = new Int8Array(graph.nodes);
  for (const [endpoints, mark] of [
    [from, 1],
    [to, -1],
  ] as const) {
    for (const e of endpoints) {
      if (!Number.isInteger(e) || e < 0 || e >= graph.endpoints) {
        throw new TriremeError("FABRIC", `endpoint ${e} is outside 0..${graph.endpoints - 1}`);
      }
      if (side[e] === -mark) throw new TriremeError("FABRIC", `endpoint ${e} is on both sides`);
      side[e] = mark;
    }
  }
  // What is left of each link; flow over a link adds to the other direction.
  const left = capacities(fabric);
  const depth = new Int32Array(graph.nodes);
  const next = new Int32Array(graph.nodes);
  let total = 0;
  while (search(fabric, side, left, depth)) {
    next.set(graph.first.subarray(0, graph.nodes));
    for (let e = 0; e < graph.endpoints; e++) {
      if (side[e] !== 1) continue;
      for (;;) {
        const pushed = push(fabric, side, left, depth, next, e);
        if (pushed === 0) break;
        total += pushed;
      }
    }
  }
  return total;
}

/** Capacity between the first half of the endpoints and the second, one direction. */
export function bisection(fabric: Fabric): BytesPerSecond {
  const { endpoints } = fabric.graph;
  const half = endpoints >> 1;
  const all = Array.from({ length: endpoints }, (_, e) => e);
  return cutCapacity(fabric, all.slice(0, half), all.slice(half));
}

/** Depths from the sources over links with something left; false when no target is reached. */
function search(fabric: Fabric, side: Int8Array, left: Float64Array, depth: Int32Array): boolean {
  const { graph } = fabric;
  depth.fill(-1);
  const queue: number[] = [];
  for (let e = 0; e < graph.endpoints; e++) {
    if (side[e] !== 1) continue;
    depth[e] = 0;
    queue.push(e);
  }
  let reached = false;
  for (let head = 0; head < queue.length; head++) {
    const node = queue[head]!;
    if (side[node] === -1) {
      reached = true;
      continue;
    }
    for (let i = graph.first[node]!; i < graph.first[node + 1]!; i++) {
      const link = graph.out[i]!;
      const to = targetOf(graph, link);
      if (left[link]! <= negligible(fabric, link) || depth[to]! >= 0) continue;
      depth[to] = depth[node]! + 1;
      queue.push(to);
    }
  }
  return reached;
}

/** Pushes flow along one path of growing depth from `source`, and returns how much. */
function push(
  fabric: Fabric,
  side: Int8Array,
  left: Float64Array,
  depth: Int32Array,
  next: Int32Array,
  source: number,
): number {
  const { graph } = fabric;
  const path: number[] = [];
  let node = source;
  while (side[node] !== -1) {
    let advanced = false;
    while (next[node]! < graph.first[node + 1]!) {
      const link = graph.out[next[node]!]!;
      const to = targetOf(graph, link);
      if (left[link]! > negligible(fabric, link) && depth[to] === depth[node]! + 1) {
        path.push(link);
        node = to;
        advanced = true;
        break;
      }
      next[node]!++;
    }
    if (advanced) continue;
    const back = path.pop();
    if (back === undefined) return 0;
    node = sourceOf(graph, back);
    next[node]!++;
  }
  let amount = Infinity;
  for (const link of path) amount = Math.min(amount, left[link]!);
  for (const link of path) {
    left[link]! -= amount;
    left[link ^ 1]! += amount;
  }
  return amount;
}

/** Rest of a link's capacity that is rounding and not room. */
function negligible(fabric: Fabric, link: number): number {
  return fabric.graph.bandwidth[link >> 1]! * 1e-12;
}

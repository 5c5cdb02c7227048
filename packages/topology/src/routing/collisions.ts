/**
 * What a set of routed flows does to the links of a fabric: flows on each link, and the collisions
 * that a hash makes. A collision is a flow whose share of an uplink is below its own port's rate.
 */
import { TriremeError } from "@trireme/core";
import { type Fabric, capacityOf, layerOf } from "../fabric/fabric.ts";
import { sourceOf, targetOf } from "../fabric/graph.ts";
import { type Routes, routeOf } from "./route.ts";

/** Flows on every link, by link number. */
export function linkLoads(fabric: Fabric, routes: Routes): Int32Array {
  const loads = new Int32Array(2 * fabric.graph.cables);
  for (const link of routes.links) loads[link]!++;
  return loads;
}

/** Collisions on the links from one layer of switches up (or across) to another. */
export interface Collisions {
  readonly from: string;
  readonly to: string;
  /** Flows that cross these links. */
  readonly flows: number;
  /** Of those, the ones that get less than their port's rate. */
  readonly collided: number;
  /** `collided / flows`. */
  readonly share: number;
  /** Mean of what a flow gets here, as a fraction of its port's rate: at most 1. */
  readonly meanRate: number;
  /** The most flows on one link, and the mean over all links of the layer. */
  readonly mostFlows: number;
  readonly meanFlows: number;
}

/**
 * Collisions of routed flows on uplinks, layer by layer from the hosts; a flow's share of a link is
 * the link's capacity over the flows on it. Host ports are not uplinks.
 */
export function collisions(fabric: Fabric, routes: Routes): readonly Collisions[] {
  const { graph, layers } = fabric;
  const loads = linkLoads(fabric, routes);
  const layerOfSwitch = new Uint8Array(graph.nodes);
  for (let n = graph.endpoints; n < graph.nodes; n++) layerOfSwitch[n] = layerOf(fabric, n);
  const width = layers.length + 1;
  /** Row of an uplink in the report; -1 for host ports and links down. */
  const rowOf = (link: number): number => {
    const from = layerOfSwitch[sourceOf(graph, link)]!;
    const to = layerOfSwitch[targetOf(graph, link)]!;
    return from === 0 || to < from ? -1 : from * width + to;
  };
  const rows = new Map<
    number,
    { links: number; on: number; most: number; flows: number; collided: number; rates: number }
  >();
  for (let link = 0; link < 2 * graph.cables; link++) {
    const row = rowOf(link);
    if (row < 0) continue;
    const r = rows.get(row) ?? { links: 0, on: 0, most: 0, flows: 0, collided: 0, rates: 0 };
    r.links++;
    r.on += loads[link]!;
    r.most = Math.max(r.most, loads[link]!);
    rows.set(row, r);
  }
  const least = new Float64Array(width * width);
  for (let f = 0; f < routes.flows; f++) {
    const route = routeOf(routes, f);
    if (route.length === 0) continue;
    const port = Math.min(
      capacityOf(fabric, route[0]!),
      capacityOf(fabric, route[route.length - 1]!),
    );
    least.fill(Infinity);
    for (const link of route) {
      const row = rowOf(link);
      if (row < 0) continue;
      least[row] = Math.min(least[row]!, capacityOf(fabric, link) / loads[link]!);
    }
    for (const [row, r] of rows) {
      if (least[row] === Infinity) continue;
      r.flows++;
      // A share that is exactly the port's rate is none, whatever rounding says.
      if (least[row]! < port * (1 - 1e-9)) r.collided++;
      r.rates += Math.min(1, least[row]! / port);
    }
  }
  return [...rows].map(([row, r]) => ({
    from: layers[Math.trunc(row / width) - 1]!.name,
    to: layers[(row % width) - 1]!.name,
    flows: r.flows,
    collided: r.collided,
    share: r.flows === 0 ? 0 : r.collided / r.flows,
    meanRate: r.flows === 0 ? 1 : r.rates / r.flows,
    mostFlows: r.most,
    meanFlows: r.on / r.links,
  }));
}

/**
 * Expected collisions when `flows` flows hash uniformly on `uplinks` links that each carry `fit`
 * flows at full rate: the other flows on a flow's link are Binomial(flows - 1, 1 / uplinks), and a
 * flow collides when at least `fit` are there.
 * @throws TriremeError "RANGE" when a count is not a positive integer.
 */
export function expectedCollisions(options: {
  readonly flows: number;
  readonly uplinks: number;
  readonly fit: number;
}): { readonly share: number; readonly meanRate: number } {
  const { flows, uplinks, fit } = options;
  for (const [name, n] of Object.entries(options)) {
    if (!Number.isSafeInteger(n) || n < 1) {
      throw new TriremeError(
        "RANGE",
        `expectedCollisions: ${name} is ${n}; use an integer from 1 up`,
      );
    }
  }
  const p = 1 / uplinks;
  let share = 0;
  let meanRate = 0;
  // Probability of k others, from the one before; in logarithms, so that it does not underflow.
  let log = uplinks === 1 ? -Infinity : (flows - 1) * Math.log1p(-p);
  for (let k = 0; k < flows; k++) {
    const probability = uplinks === 1 ? Number(k === flows - 1) : Math.exp(log);
    if (k >= fit) share += probability;
    meanRate += probability * Math.min(1, fit / (k + 1));
    log += Math.log(((flows - 1 - k) / (k + 1)) * (p / (1 - p)));
  }
  return { share, meanRate };
}

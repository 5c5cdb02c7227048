/**
 * A fabric: the graph of a network, the shape that its routes follow from, and the state of its
 * cables. States are columns beside the graph, so that a fabric with other states shares the rest.
 */
import { type BytesPerSecond, type Seconds, TriremeError } from "@trireme/core";
import type { ClosShape } from "./clos-shape.ts";
import type { DragonflyShape } from "./dragonfly.ts";
import type { Graph } from "./graph.ts";
import type { TorusShape } from "./torus.ts";

/** What the routes follow from; an explicit graph has nothing but its cables. */
export type Shape = ClosShape | TorusShape | DragonflyShape | { readonly kind: "explicit" };

/** A run of switches of one layer; layers follow each other upwards. */
export interface Layer {
  readonly name: string;
  readonly firstSwitch: number;
  readonly switches: number;
}

/** What a cable does. A flapping one is routed over, and carries traffic a part of the time. */
export type LinkState = "up" | "degraded" | "flapping" | "down";

/** State by number, in the column `state`. */
export const linkStates: readonly LinkState[] = ["up", "degraded", "flapping", "down"];

export interface Fabric {
  readonly name: string;
  readonly graph: Graph;
  readonly shape: Shape;
  /** Switches by layer, from the hosts up. */
  readonly layers: readonly Layer[];
  /** Index into `linkStates`, per cable. */
  readonly state: Uint8Array;
  /** Part of its bandwidth that a cable gives: 1 up, 0 down. */
  readonly fraction: Float32Array;
}

/** A fabric with every cable up. */
export function createFabric(
  name: string,
  graph: Graph,
  shape: Shape,
  layers: readonly Layer[],
): Fabric {
  return {
    name,
    graph,
    shape,
    layers,
    state: new Uint8Array(graph.cables),
    fraction: new Float32Array(graph.cables).fill(1),
  };
}

/** A change of one cable, both directions. */
export interface LinkChange {
  readonly cable: number;
  readonly state: LinkState;
  /** Bandwidth left, for degraded and flapping cables: above 0 and below 1. */
  readonly fraction?: number;
}

/**
 * The same fabric with some cables in another state; the graph is shared.
 * @throws TriremeError "LINK_STATE" on an unknown cable, or a fraction that the state does not allow.
 */
export function withLinkStates(fabric: Fabric, changes: readonly LinkChange[]): Fabric {
  const state = fabric.state.slice();
  const fraction = fabric.fraction.slice();
  for (const { cable, state: next, fraction: given } of changes) {
    if (!Number.isInteger(cable) || cable < 0 || cable >= fabric.graph.cables) {
      throw new TriremeError(
        "LINK_STATE",
        `cable ${cable} is outside the fabric's 0..${fabric.graph.cables - 1}`,
      );
    }
    const partial = next === "degraded" || next === "flapping";
    if (partial ? given === undefined || !(given > 0 && given < 1) : given !== undefined) {
      const rule = partial ? "needs a fraction above 0 and below 1" : "takes no fraction";
      throw new TriremeError("LINK_STATE", `cable ${cable}: state "${next}" ${rule}, not ${given}`);
    }
    state[cable] = linkStates.indexOf(next);
    fraction[cable] = given ?? (next === "up" ? 1 : 0);
  }
  return { ...fabric, state, fraction };
}

/** What a link carries in its present state. */
export function capacityOf(fabric: Fabric, link: number): BytesPerSecond {
  const cable = link >> 1;
  return fabric.graph.bandwidth[cable]! * fabric.fraction[cable]!;
}

/** Capacity of every link in its present state, by link number. */
export function capacities(fabric: Fabric): Float64Array {
  const all = new Float64Array(2 * fabric.graph.cables);
  for (let link = 0; link < all.length; link++) all[link] = capacityOf(fabric, link);
  return all;
}

/** Time that the links of a route take, without waiting. */
export function latencyAlong(fabric: Fabric, links: ArrayLike<number>): Seconds {
  let sum = 0;
  for (let i = 0; i < links.length; i++) sum += fabric.graph.latency[links[i]! >> 1]!;
  return sum;
}

/** Layer of a node: 0 for endpoints, then 1 upwards. */
export function layerOf(fabric: Fabric, node: number): number {
  if (node < fabric.graph.endpoints) return 0;
  let layer = fabric.layers.length;
  while (layer > 1 && fabric.layers[layer - 1]!.firstSwitch > node) layer--;
  return layer;
}

/** Fabrics given cable by cable: any graph, with names where the caller has them. */
import { type BytesPerSecond, type Seconds, TriremeError } from "@trireme/core";
import { hopLatency } from "./clos.ts";
import { type Fabric, type Layer, createFabric } from "./fabric.ts";
import { GraphBuilder } from "./graph.ts";

export interface Cable {
  /** Nodes: endpoints from 0, then switches. */
  readonly a: number;
  readonly b: number;
  readonly bandwidth: BytesPerSecond;
  readonly latency?: Seconds;
}

export interface ExplicitOptions {
  readonly name?: string;
  readonly endpoints: number;
  /** Switches by layer, from the hosts up; node numbers run on in this order. */
  readonly layers: readonly { readonly name: string; readonly switches: number }[];
  readonly cables: readonly Cable[];
}

/**
 * A fabric from its cables; routes are found by search.
 * @throws TriremeError "FABRIC" on a cable to an unknown node, to itself or between two endpoints, a
 * bandwidth that is not positive, or an endpoint without a cable.
 */
export function explicitFabric(options: ExplicitOptions): Fabric {
  const { endpoints, cables } = options;
  const name = options.name ?? "explicit";
  if (!Number.isSafeInteger(endpoints) || endpoints < 1) {
    throw new TriremeError("FABRIC", `${name}: ${endpoints} endpoints; use an integer from 1 up`);
  }
  const layers: Layer[] = [];
  let nodes = endpoints;
  for (const { name: layer, switches } of options.layers) {
    if (!Number.isSafeInteger(switches) || switches < 0) {
      throw new TriremeError("FABRIC", `${name}, layer ${layer}: ${switches} switches`);
    }
    layers.push({ name: layer, firstSwitch: nodes, switches });
    nodes += switches;
  }
  const graph = new GraphBuilder(endpoints, nodes - endpoints, cables.length);
  const wired = new Uint8Array(endpoints);
  for (const [i, { a, b, bandwidth, latency = hopLatency }] of cables.entries()) {
    for (const node of [a, b]) {
      if (!Number.isInteger(node) || node < 0 || node >= nodes) {
        throw new TriremeError(
          "FABRIC",
          `${name}, cable ${i}: node ${node} is outside 0..${nodes - 1}`,
        );
      }
      if (node < endpoints) wired[node] = 1;
    }
    // Hosts do not forward: a chip that does has a switch of its own.
    if (a === b || (a < endpoints && b < endpoints)) {
      throw new TriremeError(
        "FABRIC",
        `${name}, cable ${i}: joins nodes ${a} and ${b}; one end at least is a switch (${endpoints}..${nodes - 1}), the other another node`,
      );
    }
    if (!(bandwidth > 0 && latency >= 0)) {
      throw new TriremeError(
        "FABRIC",
        `${name}, cable ${i}: ${bandwidth} B/s and ${latency} s; bandwidth must be above 0, latency not below`,
      );
    }
    graph.add(a, b, bandwidth, latency);
  }
  const loose = wired.indexOf(0);
  if (loose >= 0) throw new TriremeError("FABRIC", `${name}: endpoint ${loose} has no cable`);
  return createFabric(name, graph.finish(), { kind: "explicit" }, layers);
}

import { TriremeError } from "@trireme/core";
import { type DragonflyShape, dragonflyGroup } from "../fabric/dragonfly.ts";
import { type Fabric, capacityOf } from "../fabric/fabric.ts";
import { ecmpChoice } from "./ecmp.ts";

/**
 * Ways on a dragonfly that are not shortest (Kim, Dally, Scott, Abts 2008, section 4.1): from the
 * source's group to a group in between, and from where that is entered to the destination, so at
 * most local, global, local, global, local. Valiant's way takes every flow between groups through
 * one drawn at random, which halves the best throughput and saves the worst; UGAL compares it with
 * the shortest way. The load of a way is what it will be on its fullest link, of all links: the
 * paper's UGAL-G, an upper bound of what routers reach that see only their own queues.
 */
export class Detours {
  readonly #fabric: Fabric;
  readonly #shape: DragonflyShape;
  readonly #always: boolean;

  /** @throws TriremeError "ROUTE" where the fabric is no dragonfly. */
  constructor(fabric: Fabric, kind: "valiant" | "ugal") {
    const { shape, name } = fabric;
    if (shape.kind !== "dragonfly") {
      throw new TriremeError(
        "ROUTE",
        `${kind} routes go by a third group of a dragonfly, but ${name} is of shape ${shape.kind}; use ecmp, adaptive or static`,
      );
    }
    this.#fabric = fabric;
    this.#shape = shape;
    this.#always = kind === "valiant";
  }

  groupOf(node: number): number {
    return dragonflyGroup(this.#shape, node);
  }

  /**
   * The endpoint in another group towards which a flow sets out, drawn by its hash: it stands for
   * its group, and spreads the flows over the cables to it. -1 inside a group and between two.
   */
  via(source: number, target: number, hash: number): number {
    const { groups, ports, routers, endpoints } = this.#shape;
    const [from, to] = [this.groupOf(source), this.groupOf(target)];
    if (from === to || groups < 3) return -1;
    const { nodes } = this.#fabric.graph;
    let group = ecmpChoice(hash, nodes, groups - 2);
    if (group >= Math.min(from, to)) group++;
    if (group >= Math.max(from, to)) group++;
    const first = group * ports * routers;
    return first + ecmpChoice(hash, nodes + 1, Math.min(ports * routers, endpoints - first));
  }

  /**
   * Whether a flow takes the detour: `ways` holds the links of the shortest way, `shortest` of them,
   * and then those of the detour. Loads are flows over capacity, without this flow.
   */
  better(loads: Float64Array | undefined, ways: Int32Array, shortest: number): boolean {
    if (this.#always || !loads) return true;
    const { graph } = this.#fabric;
    /** Hops between routers times the fullest of them, this flow counted. */
    const cost = (start: number, end: number): number => {
      let fullest = 0;
      for (let i = start; i < end; i++) {
        const link = ways[i]!;
        // The ports of the two endpoints are on both ways.
        if (graph.a[link >> 1]! < graph.endpoints) continue;
        fullest = Math.max(fullest, loads[link]! + 1 / capacityOf(this.#fabric, link));
      }
      return (end - start - 2) * fullest;
    };
    return cost(shortest, ways.length) < cost(0, shortest);
  }
}

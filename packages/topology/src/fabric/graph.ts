/**
 * A network as columns. Nodes 0 … endpoints-1 are the ports of hosts, the rest are switches; a
 * cable joins two nodes and is two links: link 2c runs from `a[c]` to `b[c]`, link 2c+1 back, so
 * `link ^ 1` is the other direction. Bandwidth and latency are of one direction.
 */
import { type BytesPerSecond, type Seconds, TriremeError } from "@trireme/core";

export interface Graph {
  readonly endpoints: number;
  /** Endpoints and switches. */
  readonly nodes: number;
  readonly cables: number;
  /** Ends of each cable; links go from `a` to `b` and back. */
  readonly a: Int32Array;
  readonly b: Int32Array;
  readonly bandwidth: Float64Array;
  readonly latency: Float64Array;
  /**
   * Links that leave node n: `out[first[n]]` … `out[first[n + 1] - 1]`, ascending. Read both once
   * before a loop; a structured clone of a built graph leaves them out.
   */
  readonly first: Int32Array;
  readonly out: Int32Array;
}

/** Node that a link leaves. */
export function sourceOf(graph: Graph, link: number): number {
  return (link & 1) === 0 ? graph.a[link >> 1]! : graph.b[link >> 1]!;
}

/** Node that a link enters. */
export function targetOf(graph: Graph, link: number): number {
  return (link & 1) === 0 ? graph.b[link >> 1]! : graph.a[link >> 1]!;
}

/** Collects cables whose number is known; the graph indexes them by node. */
export class GraphBuilder {
  readonly #endpoints: number;
  readonly #nodes: number;
  readonly #a: Int32Array;
  readonly #b: Int32Array;
  readonly #bandwidth: Float64Array;
  readonly #latency: Float64Array;
  #cables = 0;

  /** @param cables Exactly how many cables will be added. */
  constructor(endpoints: number, switches: number, cables: number) {
    // Links are 32-bit integers, two to a cable.
    if (!(endpoints + switches < 2 ** 31 && cables < 2 ** 30)) {
      throw new TriremeError(
        "FABRIC",
        `${endpoints} endpoints, ${switches} switches and ${cables} cables: a fabric holds at most 2^31 nodes and 2^30 cables`,
      );
    }
    this.#endpoints = endpoints;
    this.#nodes = endpoints + switches;
    this.#a = new Int32Array(cables);
    this.#b = new Int32Array(cables);
    this.#bandwidth = new Float64Array(cables);
    this.#latency = new Float64Array(cables);
  }

  /** Adds a cable and returns its number. */
  add(a: number, b: number, bandwidth: BytesPerSecond, latency: Seconds): number {
    const cable = this.#cables++;
    this.#a[cable] = a;
    this.#b[cable] = b;
    this.#bandwidth[cable] = bandwidth;
    this.#latency[cable] = latency;
    return cable;
  }

  /**
   * Adds cables of one kind and returns the columns of their ends, `a` and `b`, for the caller to
   * fill. Filling columns is what makes a fabric of 10^5 ports cheap to build.
   */
  addRun(
    cables: number,
    bandwidth: BytesPerSecond,
    latency: Seconds,
  ): { readonly a: Int32Array; readonly b: Int32Array } {
    const first = this.#cables;
    const end = (this.#cables += cables);
    this.#bandwidth.fill(bandwidth, first, end);
    this.#latency.fill(latency, first, end);
    return { a: this.#a.subarray(first, end), b: this.#b.subarray(first, end) };
  }

  finish(): Graph {
    const cables = this.#a.length;
    if (this.#cables !== cables) {
      throw new TriremeError("FABRIC", `${this.#cables} cables added, but ${cables} announced`);
    }
    return new BuiltGraph({
      endpoints: this.#endpoints,
      nodes: this.#nodes,
      a: this.#a,
      b: this.#b,
      bandwidth: this.#bandwidth,
      latency: this.#latency,
    });
  }
}

/**
 * Works the index by node out when it is first read: it costs as much as the cables, and routes
 * over a known shape do without it. A class, not getters of a literal, which slow every column.
 */
class BuiltGraph implements Graph {
  readonly endpoints: number;
  readonly nodes: number;
  readonly cables: number;
  readonly a: Int32Array;
  readonly b: Int32Array;
  readonly bandwidth: Float64Array;
  readonly latency: Float64Array;
  #index: NodeIndex | undefined;

  constructor(columns: Omit<Graph, "cables" | keyof NodeIndex>) {
    this.endpoints = columns.endpoints;
    this.nodes = columns.nodes;
    this.cables = columns.a.length;
    this.a = columns.a;
    this.b = columns.b;
    this.bandwidth = columns.bandwidth;
    this.latency = columns.latency;
  }

  get first(): Int32Array {
    return (this.#index ??= indexByNode(this.nodes, this.a, this.b)).first;
  }

  get out(): Int32Array {
    return (this.#index ??= indexByNode(this.nodes, this.a, this.b)).out;
  }
}

type NodeIndex = Pick<Graph, "first" | "out">;

function indexByNode(nodes: number, a: Int32Array, b: Int32Array): NodeIndex {
  const cables = a.length;
  const first = new Int32Array(nodes + 1);
  for (let c = 0; c < cables; c++) {
    first[a[c]! + 1]!++;
    first[b[c]! + 1]!++;
  }
  for (let n = 0; n < nodes; n++) first[n + 1]! += first[n]!;
  const next = first.slice(0, nodes);
  const out = new Int32Array(2 * cables);
  for (let c = 0; c < cables; c++) {
    out[next[a[c]!]!++] = 2 * c;
    out[next[b[c]!]!++] = 2 * c + 1;
  }
  return { first, out };
}

/**
 * Tori of any number of dimensions: one router a chip, a ring along each dimension. Neighbours in a
 * dimension of two have one cable, in a dimension of one none.
 */
import { type BytesPerSecond, type Seconds, TriremeError } from "@trireme/core";
import { hopLatency } from "./clos.ts";
import { type Fabric, createFabric } from "./fabric.ts";
import { GraphBuilder } from "./graph.ts";

export interface TorusShape {
  readonly kind: "torus";
  readonly endpoints: number;
  /** Sizes; the first varies fastest over the endpoints. */
  readonly sizes: readonly number[];
  /** First cable of each dimension; the cable of router r goes to the next one up. */
  readonly firstCable: readonly number[];
}

export interface TorusOptions {
  readonly name?: string;
  /** Two or three sizes, or any number. */
  readonly sizes: readonly number[];
  /** Of one cable, one direction. */
  readonly bandwidth: BytesPerSecond;
  readonly latency?: Seconds;
}

/**
 * A torus of chips. The way from a chip into its router is as wide as all its cables together.
 * @throws TriremeError "FABRIC" on a size that is not a positive integer.
 */
export function torusFabric(options: TorusOptions): Fabric {
  const { sizes, bandwidth, latency = hopLatency } = options;
  const name = options.name ?? `torus-${sizes.join("x")}`;
  for (const size of sizes) {
    if (!Number.isSafeInteger(size) || size < 1) {
      throw new TriremeError("FABRIC", `${name}: size ${size}; use integers from 1 up`);
    }
  }
  if (!(bandwidth > 0)) {
    throw new TriremeError("FABRIC", `${name}: bandwidth ${bandwidth} B/s; it must be above 0`);
  }
  const endpoints = sizes.reduce((product, size) => product * size, 1);
  const firstCable: number[] = [];
  let cables = endpoints;
  for (const size of sizes) {
    firstCable.push(cables);
    cables += ringCables(size) * (endpoints / size);
  }
  const graph = new GraphBuilder(endpoints, endpoints, cables);
  const ports = sizes.reduce((n, size) => n + Math.min(size - 1, 2), 0);
  for (let e = 0; e < endpoints; e++) {
    graph.add(e, endpoints + e, bandwidth * Math.max(1, ports), 0);
  }
  let stride = 1;
  for (const size of sizes) {
    for (let r = 0; r < endpoints; r++) {
      const at = Math.trunc(r / stride) % size;
      if (at >= ringCables(size)) continue;
      const next = r + (at === size - 1 ? 1 - size : 1) * stride;
      graph.add(endpoints + r, endpoints + next, bandwidth, latency);
    }
    stride *= size;
  }
  const shape: TorusShape = { kind: "torus", endpoints, sizes: [...sizes], firstCable };
  const layer = { name: "router", firstSwitch: endpoints, switches: endpoints };
  return createFabric(name, graph.finish(), shape, [layer]);
}

/** Links from `node` that shorten the way to `endpoint`, one or two for each dimension left. */
export function torusNextLinks(
  shape: TorusShape,
  node: number,
  endpoint: number,
  links: Int32Array,
): number {
  const { endpoints, sizes, firstCable } = shape;
  if (node < endpoints) {
    links[0] = 2 * node;
    return node === endpoint ? 0 : 1;
  }
  const router = node - endpoints;
  if (router === endpoint) {
    links[0] = 2 * router + 1;
    return 1;
  }
  let count = 0;
  let stride = 1;
  for (let d = 0; d < sizes.length; d++) {
    const size = sizes[d]!;
    const at = Math.trunc(router / stride) % size;
    const up = ((Math.trunc(endpoint / stride) % size) - at + size) % size;
    if (up !== 0) {
      const first = firstCable[d]!;
      if (2 * up <= size) {
        // A ring of two has one cable, which its first router owns.
        const back = size === 2 ? at : 0;
        links[count++] = 2 * (first + ringCable(router, stride, size, at - back)) + back;
      }
      if (2 * up >= size && size > 2) {
        const below = at === 0 ? size - 1 : at - 1;
        links[count++] = 2 * (first + ringCable(router, stride, size, below)) + 1;
      }
    }
    stride *= size;
  }
  return count;
}

/** Number, within its dimension, of the cable that the router at `owner` of this ring owns. */
function ringCable(router: number, stride: number, size: number, owner: number): number {
  const ring = Math.trunc(router / (stride * size));
  return (ring * ringCables(size) + owner) * stride + (router % stride);
}

function ringCables(size: number): number {
  return size > 2 ? size : size - 1;
}

/**
 * Dragonflies (Kim, Dally, Scott, Abts: Technology-driven, highly-scalable dragonfly topology,
 * ISCA 2008), the form of HPE Slingshot: routers of a group are all joined, and groups are joined
 * by global cables, dealt out evenly over the pairs of groups. The routes here are minimal: at most
 * one local link, one global, one local; see `Detours` for the others.
 */
import { type BytesPerSecond, type Seconds, TriremeError, us } from "@trireme/core";
import { hopLatency } from "./clos.ts";
import { type Fabric, createFabric } from "./fabric.ts";
import { GraphBuilder } from "./graph.ts";

export interface DragonflyShape {
  readonly kind: "dragonfly";
  readonly endpoints: number;
  /** Endpoints of a router. */
  readonly ports: number;
  /** Routers of a group. */
  readonly routers: number;
  /** Global cables of a router. */
  readonly globals: number;
  readonly groups: number;
  /** Global cables between two groups. */
  readonly bundle: number;
  readonly firstLocal: number;
  readonly firstGlobal: number;
}

export interface DragonflyOptions {
  readonly name?: string;
  readonly endpoints: number;
  /** Endpoints, routers and global cables as in the paper's p, a and h. */
  readonly ports: number;
  readonly routers: number;
  readonly globals: number;
  readonly bandwidth: BytesPerSecond;
  /** Of a global cable, where it differs from the others. */
  readonly globalBandwidth?: BytesPerSecond;
  readonly latency?: Seconds;
  /** Of a global cable: optical, tens of metres; 1 µs when left out. */
  readonly globalLatency?: Seconds;
}

/**
 * A dragonfly with as many groups as the endpoints need.
 * @throws TriremeError "FABRIC" on counts that are not positive integers, or more groups than the
 * global cables of one group can reach.
 */
export function dragonflyFabric(options: DragonflyOptions): Fabric {
  const { endpoints, ports, routers, globals, bandwidth } = options;
  const { globalBandwidth = bandwidth, latency = hopLatency, globalLatency = us(1) } = options;
  const name = options.name ?? "dragonfly";
  for (const [what, n] of Object.entries({ endpoints, ports, routers, globals })) {
    if (!Number.isSafeInteger(n) || n < 1) {
      throw new TriremeError("FABRIC", `${name}: ${what} is ${n}; use an integer from 1 up`);
    }
  }
  if (!(bandwidth > 0 && globalBandwidth > 0)) {
    throw new TriremeError(
      "FABRIC",
      `${name}: bandwidth ${bandwidth} and ${globalBandwidth} B/s; both must be above 0`,
    );
  }
  const groups = Math.ceil(endpoints / (ports * routers));
  const reach = routers * globals;
  if (groups > reach + 1) {
    throw new TriremeError(
      "FABRIC",
      `${name}: ${groups} groups, but ${routers} routers x ${globals} global cables reach ${reach} others; at most ${ports * routers * (reach + 1)} endpoints fit`,
    );
  }
  const bundle = groups > 1 ? Math.floor(reach / (groups - 1)) : 0;
  const localCables = groups * ((routers * (routers - 1)) / 2);
  const globalCables = ((groups * (groups - 1)) / 2) * bundle;
  const shape: DragonflyShape = {
    kind: "dragonfly",
    endpoints,
    ports,
    routers,
    globals,
    groups,
    bundle,
    firstLocal: endpoints,
    firstGlobal: endpoints + localCables,
  };
  const switches = groups * routers;
  const graph = new GraphBuilder(endpoints, switches, endpoints + localCables + globalCables);
  for (let e = 0; e < endpoints; e++) {
    graph.add(e, endpoints + Math.trunc(e / ports), bandwidth, latency);
  }
  for (let g = 0; g < groups; g++) {
    const first = endpoints + g * routers;
    for (let i = 1; i < routers; i++) {
      for (let j = 0; j < i; j++) graph.add(first + j, first + i, bandwidth, latency);
    }
  }
  for (let high = 1; high < groups; high++) {
    for (let low = 0; low < high; low++) {
      for (let q = 0; q < bundle; q++) {
        const a = endpoints + low * routers + gateway(shape, low, high, q);
        const b = endpoints + high * routers + gateway(shape, high, low, q);
        graph.add(a, b, globalBandwidth, globalLatency);
      }
    }
  }
  const layer = { name: "router", firstSwitch: endpoints, switches };
  return createFabric(name, graph.finish(), shape, [layer]);
}

/** Links from `node` towards `endpoint` on the least-hop minimal routes. */
export function dragonflyNextLinks(
  shape: DragonflyShape,
  node: number,
  endpoint: number,
  links: Int32Array,
): number {
  const { endpoints, ports, routers, bundle, firstLocal } = shape;
  if (node < endpoints) {
    links[0] = 2 * node;
    return node === endpoint ? 0 : 1;
  }
  const router = node - endpoints;
  const last = Math.trunc(endpoint / ports);
  if (router === last) {
    links[0] = 2 * endpoint + 1;
    return 1;
  }
  const group = Math.trunc(router / routers);
  const home = Math.trunc(last / routers);
  const [at, goal] = [router - group * routers, last - home * routers];
  if (group === home) {
    links[0] = localLink(firstLocal, group, routers, at, goal);
    return 1;
  }
  let count = 0;
  let least = Infinity;
  for (let q = 0; q < bundle; q++) {
    const near = gateway(shape, group, home, q);
    const hops = (near === at ? 0 : 1) + (gateway(shape, home, group, q) === goal ? 0 : 1);
    // Several global cables of one gateway share the way to it: gateways are dealt round.
    if (hops > least || (near !== at && q >= routers)) continue;
    if (hops < least) count = 0;
    least = hops;
    links[count++] =
      near === at
        ? globalLink(shape, group, home, q)
        : localLink(firstLocal, group, routers, at, near);
  }
  return count;
}

/** Group of an endpoint or router. */
export function dragonflyGroup(shape: DragonflyShape, node: number): number {
  const { endpoints, ports, routers } = shape;
  const router = node < endpoints ? Math.trunc(node / ports) : node - endpoints;
  return Math.trunc(router / routers);
}

/** Router of `group` that holds the q-th cable to group `other`: pairs in relative order. */
function gateway(shape: DragonflyShape, group: number, other: number, q: number): number {
  const { groups, bundle, routers } = shape;
  const offset = (other - group + groups) % groups;
  // Dealt round the routers, so that a bundle spreads over them.
  return ((offset - 1) * bundle + q) % routers;
}

function localLink(
  firstLocal: number,
  group: number,
  routers: number,
  from: number,
  to: number,
): number {
  const [low, high] = from < to ? [from, to] : [to, from];
  const cable =
    firstLocal + group * ((routers * (routers - 1)) / 2) + (high * (high - 1)) / 2 + low;
  return 2 * cable + (from < to ? 0 : 1);
}

function globalLink(shape: DragonflyShape, group: number, other: number, q: number): number {
  const [low, high] = group < other ? [group, other] : [other, group];
  const cable = shape.firstGlobal + ((high * (high - 1)) / 2 + low) * shape.bundle + q;
  return 2 * cable + (group < other ? 0 : 1);
}

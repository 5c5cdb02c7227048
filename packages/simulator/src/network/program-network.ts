/**
 * The links of a cluster that the messages and collectives of a program go over. A message goes the way
 * between its two devices. Sums and gathers go round a ring: inside a host from rank to rank, between
 * hosts over as many rails as the group has ranks on each, every rail with its part, as NCCL's channels
 * do; in an exchange each rank sends to all others at once.
 */
import { deviceRoutes } from "@trireme/collectives";
import { type Cluster, type RoutingPolicy, hostIndex } from "@trireme/topology";
import type { Program } from "../program/program.ts";
import type { SharedNetwork, SharedRoute } from "../program/shared-ways.ts";

/** A program's ranks on a cluster. */
export interface ProgramNetworkOptions {
  readonly cluster: Cluster;
  readonly program: Program;
  /** Device of each rank; its own number when left out. */
  readonly devices?: ArrayLike<number>;
  /** How switches choose among ways; ECMP with seed 0 when left out. */
  readonly policy?: RoutingPolicy;
}

/** Pairs of devices and what goes between each, of what goes between the first that pace the whole. */
interface Traffic {
  readonly from: number[];
  readonly to: number[];
  readonly weight: number[];
  /** Part of a buffer that goes over a pair of weight 1 in one pass around. */
  readonly part: number;
}

/** Links and weights of traffic, before what it is alone is known. */
interface Ways {
  readonly links: Int32Array;
  readonly weights: Float64Array;
  readonly part: number;
}

/** The network of a program whose communication lies on a cluster. Throws as `deviceRoutes` does. */
export function programNetwork(o: ProgramNetworkOptions): SharedNetwork {
  const { program, cluster } = o;
  const { groups, labels } = program;
  const { from, to, duration, send } = program.messages();
  const { group, label, duration: times } = program.collectives();
  const deviceOf = (rank: number): number => o.devices?.[rank] ?? rank;
  const pairs = new Map<number, Traffic>();
  const pairOf = (id: number): number => from[id]! * program.ranks + to[id]!;
  for (let id = 0; id < from.length; id++) {
    if (pairs.has(pairOf(id))) continue;
    const ends = { from: [deviceOf(from[id]!)], to: [deviceOf(to[id]!)] };
    pairs.set(pairOf(id), { ...ends, weight: [1], part: 1 });
  }
  const wide = new Map<number, Traffic>();
  const wideOf = (id: number): number =>
    2 * group[id]! + (labels[label[id]!]!.kind === "all-to-all" ? 1 : 0);
  for (let id = 0; id < group.length; id++) {
    const key = wideOf(id);
    if (wide.has(key)) continue;
    const members = Array.from(groups[group[id]!]!, deviceOf);
    wide.set(key, key % 2 === 1 ? exchange(members) : ring(cluster, members));
  }
  const all = [...pairs.values(), ...wide.values()];
  const ends = { from: all.flatMap((t) => t.from), to: all.flatMap((t) => t.to) };
  const routes = deviceRoutes(cluster, ends, o.policy);
  const { capacities } = routes;
  let next = 0;
  const waysOf = (traffic: Traffic): Ways => {
    const first = next;
    next += traffic.from.length;
    const weights = new Map<number, number>();
    traffic.weight.forEach((weight, i) => {
      for (const link of routes.links[first + i]!) {
        weights.set(link, (weights.get(link) ?? 0) + weight);
      }
    });
    return {
      links: Int32Array.from(weights.keys()),
      weights: Float64Array.from(weights.values()),
      part: traffic.part,
    };
  };
  const messageWays = new Map([...pairs].map(([key, traffic]) => [key, waysOf(traffic)]));
  const collectiveWays = new Map([...wide].map(([key, traffic]) => [key, waysOf(traffic)]));
  const known = new Map<string, SharedRoute | undefined>();
  const routeOf = (
    key: string,
    ways: Ways,
    bytes: number,
    time: number,
  ): SharedRoute | undefined => {
    const name = `${key} ${bytes} ${time}`;
    if (!known.has(name)) known.set(name, paced(ways, capacities, bytes, time));
    return known.get(name);
  };
  return {
    capacities,
    message: (id) => {
      const ways = messageWays.get(pairOf(id))!;
      const bytes = labels[send[id]!]!.bytes ?? 0;
      return routeOf(`m${pairOf(id)}`, ways, bytes, duration[id]!);
    },
    collective: (id) => {
      const { kind, bytes = 0 } = labels[label[id]!]!;
      const passes = kind === "all-reduce" ? 2 : 1;
      return routeOf(`c${wideOf(id)}`, collectiveWays.get(wideOf(id))!, passes * bytes, times[id]!);
    },
  };
}

/**
 * The route of so many bytes that take a time alone. No link carries more of it than it can alone:
 * where the cost model knows a better way than this, what is alone is not slower for it.
 */
function paced(
  { links, weights, part }: Ways,
  capacities: Float64Array,
  bytes: number,
  time: number,
): SharedRoute | undefined {
  const rate = (part * bytes) / time;
  if (!(rate > 0 && rate < Infinity) || links.length === 0) return undefined;
  return {
    links,
    weights: weights.map((w, i) => Math.min(w, capacities[links[i]!]! / rate)),
    rate,
  };
}

function exchange(members: readonly number[]): Traffic {
  const traffic: Traffic = { from: [], to: [], weight: [], part: 1 / members.length };
  for (const from of members) {
    for (const to of members) {
      if (from !== to) add(traffic, from, to, 1);
    }
  }
  return traffic;
}

function ring(cluster: Cluster, members: readonly number[]): Traffic {
  const hosts = new Map<number, number[]>();
  for (const device of members) {
    const host = hostIndex(cluster, device);
    const list = hosts.get(host);
    if (list === undefined) hosts.set(host, [device]);
    else list.push(device);
  }
  const lists = [...hosts.values()];
  const around = (members.length - 1) / members.length;
  if (lists.length === 1)
    return inside({ from: [], to: [], weight: [], part: around }, lists[0]!, 1);
  const rails = Math.min(...lists.map((list) => list.length));
  const traffic: Traffic = { from: [], to: [], weight: [], part: around / rails };
  for (const [h, list] of lists.entries()) {
    const following = lists[(h + 1) % lists.length]!;
    for (let rail = 0; rail < rails; rail++) add(traffic, list[rail]!, following[rail]!, 1);
    // Each rail's ring enters a host at one rank and leaves it at another, and passes all between.
    inside(traffic, list, (rails * (list.length - 1)) / list.length);
  }
  return traffic;
}

/** From each device of a host to its next. */
function inside(traffic: Traffic, list: readonly number[], weight: number): Traffic {
  if (list.length === 1) return traffic;
  for (const [i, device] of list.entries()) {
    add(traffic, device, list[(i + 1) % list.length]!, weight);
  }
  return traffic;
}

function add(traffic: Traffic, from: number, to: number, weight: number): void {
  traffic.from.push(from);
  traffic.to.push(to);
  traffic.weight.push(weight);
}

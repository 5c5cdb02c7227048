/**
 * Collectives that share links. Each plan becomes one flow per pair of devices that talk, carrying
 * all that the plan sends between them, as pipelined implementations do; flows get max-min fair
 * rates over the links they are routed on, anew whenever one starts or ends, and a collective is
 * over when its last flow is. Ring order, rails and ECMP collisions change the answer.
 */
import { type Bytes, type Seconds, TriremeError } from "@trireme/core";
import {
  type Cluster,
  FlowRates,
  type RoutingPolicy,
  capacities,
  hostIndex,
  hostOf,
  linkBetween,
  nicIndex,
  routeFlows,
  routeOf,
} from "@trireme/topology";
import type { CollectivePlan } from "../plan/plan.ts";
import { verify } from "../plan/verify.ts";

/** A collective among others. */
export interface ContendingCollective {
  readonly plan: CollectivePlan;
  /** Device of each rank of the plan. */
  readonly devices: readonly number[];
  /** Buffer of one rank; see `chunkBytes`. */
  readonly bytes: Bytes;
  /** When it starts. Default 0. */
  readonly start?: Seconds;
}

/** Options of `contend`. */
export interface ContentionOptions {
  readonly cluster: Cluster;
  readonly collectives: readonly ContendingCollective[];
  /** How switches choose among ways. Default ECMP, seed 0. */
  readonly policy?: RoutingPolicy;
}

/** What came of it. */
export interface Contention {
  /** Seconds each collective takes, from its start. */
  readonly times: readonly Seconds[];
  /** Most flows that ran at once. */
  readonly flows: number;
}

interface Flow {
  readonly collective: number;
  readonly links: readonly number[];
  left: Bytes;
  rates: number;
}

/**
 * Runs collectives side by side. Throws `CONTENTION` when a plan does not hold or fit its devices, or
 * a start or a number of bytes is not finite and 0 or more.
 */
export function contend(options: ContentionOptions): Contention {
  const { cluster, collectives } = options;
  const links = new LinkTable(cluster);
  const flows = collectives.flatMap((collective, index) => flowsOf(cluster, collective, index));
  links.route(flows, options.policy);
  const waiting = collectives.map(({ start = 0 }, index) => ({ start, index }));
  waiting.sort((a, b) => b.start - a.start);
  const rates = new FlowRates(links.capacity());
  const running = new Set<Flow & { links: number[] }>();
  const open = collectives.map(() => 0);
  const times = collectives.map(({ plan, devices }) => latencyOf(cluster, plan, devices));
  let now = 0;
  let most = 0;
  while (running.size > 0 || waiting.length > 0) {
    let next = waiting.at(-1)?.start ?? Infinity;
    for (const flow of running) next = Math.min(next, now + flow.left / rates.rate(flow.rates));
    if (next === Infinity) {
      throw new TriremeError(
        "CONTENTION",
        `${running.size} flows stand still on links that are down`,
      );
    }
    for (const flow of running) {
      flow.left -= (next - now) * rates.rate(flow.rates);
    }
    now = next;
    for (const flow of running) {
      // A billionth of a byte is rounding, not payload.
      if (flow.left > 1e-9 * collectives[flow.collective]!.bytes) continue;
      running.delete(flow);
      rates.remove(flow.rates);
      if (--open[flow.collective]! === 0) {
        times[flow.collective]! += now - (collectives[flow.collective]!.start ?? 0);
      }
    }
    while (waiting.length > 0 && waiting.at(-1)!.start <= now) {
      const { index } = waiting.pop()!;
      for (const flow of flows) {
        if (flow.collective !== index || flow.left <= 0) continue;
        flow.rates = rates.add(flow.links);
        running.add(flow);
        open[index]!++;
      }
    }
    most = Math.max(most, running.size);
  }
  return { times, flows: most };
}

interface RoutedFlow extends Flow {
  readonly from: number;
  readonly to: number;
  links: number[];
}

function flowsOf(
  cluster: Cluster,
  { plan, devices, bytes, start = 0 }: ContendingCollective,
  collective: number,
): RoutedFlow[] {
  if (devices.length !== plan.ranks || plan.switches > 0) {
    throw new TriremeError(
      "CONTENTION",
      `plan of ${plan.ranks} ranks and ${plan.switches} switches on ${devices.length} devices; there must be a device for each rank and no switch`,
    );
  }
  for (const [name, value] of Object.entries({ bytes, start })) {
    if (value >= 0 && value < Infinity) continue;
    throw new TriremeError(
      "CONTENTION",
      `${name} = ${value} of collective ${collective} must be 0 or more, and finite`,
    );
  }
  const verified = verify(plan, bytes);
  if (!verified.ok) throw new TriremeError("CONTENTION", `plan does not hold: ${verified.reason}`);
  return [...verified.links].map(([pair, left]) => {
    const from = devices[Math.floor(pair / plan.ranks)]!;
    const to = devices[pair % plan.ranks]!;
    // Throws where the cluster has no such device.
    hostOf(cluster, from);
    hostOf(cluster, to);
    return { collective, links: [], left, rates: -1, from, to };
  });
}

/** Links of traffic between devices: capacities by link number, and the links of each pair in order. */
export interface DeviceRoutes {
  readonly capacities: Float64Array;
  readonly links: readonly (readonly number[])[];
}

/**
 * Routes pairs of devices over the cluster's links. The fabric's links have their numbers (cable c is
 * links 2c and 2c + 1), links of devices and hosts come after them.
 */
export function deviceRoutes(
  cluster: Cluster,
  pairs: { readonly from: ArrayLike<number>; readonly to: ArrayLike<number> },
  policy?: RoutingPolicy,
): DeviceRoutes {
  const table = new LinkTable(cluster);
  const flows = Array.from(pairs.from, (from, i): RoutedFlow => {
    return { collective: 0, left: 0, rates: -1, from, to: pairs.to[i]!, links: [] };
  });
  table.route(
    flows.filter((flow) => flow.from !== flow.to),
    policy,
  );
  return {
    capacities: Float64Array.from(table.capacity()),
    links: flows.map((flow) => flow.links),
  };
}

/** First bytes of all steps: the slowest link of each, one after the other. */
function latencyOf(cluster: Cluster, plan: CollectivePlan, devices: readonly number[]): Seconds {
  let sum = 0;
  for (let step = 0; step < plan.steps; step++) {
    let slowest = 0;
    for (let row = plan.starts[step]!; row < plan.starts[step + 1]!; row++) {
      const [from, to] = [devices[plan.source[row]!]!, devices[plan.target[row]!]!];
      slowest = Math.max(slowest, linkBetween(cluster, from, to).latency);
    }
    sum += slowest;
  }
  return sum;
}

/** The fabric's links by number, and after them links of devices, made when first used. */
class LinkTable {
  readonly #cluster: Cluster;
  readonly #capacity: number[];
  readonly #known = new Map<string, number>();

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
    this.#capacity = cluster.fabric === undefined ? [] : Array.from(capacities(cluster.fabric));
  }

  capacity(): readonly number[] {
    return this.#capacity;
  }

  /** Gives every flow its links. */
  route(flows: readonly RoutedFlow[], policy: RoutingPolicy | undefined): void {
    const outside: RoutedFlow[] = [];
    for (const flow of flows) {
      const { from, to } = flow;
      const link = linkBetween(this.#cluster, from, to);
      if (link.kind === "network") {
        flow.links.push(
          this.#port("share-out", from, hostOf(this.#cluster, from).network.bandwidth),
          this.#port("share-in", to, hostOf(this.#cluster, to).network.bandwidth),
        );
        outside.push(flow);
      } else if (this.#wired(from)) {
        flow.links.push(this.#port(`wire-${to}`, from, link.bandwidth));
      } else {
        flow.links.push(
          this.#port("out", from, link.bandwidth),
          this.#port("in", to, link.bandwidth),
        );
      }
    }
    const { fabric } = this.#cluster;
    if (fabric === undefined) return;
    const nics = (device: (flow: RoutedFlow) => number): number[] =>
      outside.map((flow) => nicIndex(this.#cluster, device(flow)));
    const ends = { from: nics((flow) => flow.from), to: nics((flow) => flow.to) };
    const routes = routeFlows(fabric, { ...ends, key: outside.map((_, i) => i) }, policy);
    outside.forEach((flow, i) => flow.links.push(...routeOf(routes, i)));
  }

  /** Whether the devices of the host are joined pair by pair. */
  #wired(device: number): boolean {
    const { interior } = hostOf(this.#cluster, device);
    return interior !== undefined && !interior.parts.some((part) => part.kind === "switch");
  }

  #port(kind: string, device: number, bandwidth: number): number {
    const name = `${hostIndex(this.#cluster, device)}:${device}:${kind}`;
    let link = this.#known.get(name);
    if (link === undefined) {
      link = this.#capacity.push(bandwidth) - 1;
      this.#known.set(name, link);
    }
    return link;
  }
}

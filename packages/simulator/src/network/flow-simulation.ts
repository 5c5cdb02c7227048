/**
 * Traffic on a cluster at the grain of flows: every flow has its max-min fair share of the links on its
 * way, anew whenever one starts or ends or a link changes; its rate converges to that as its congestion
 * control does (congestion.ts), and where a link on its way is down it waits for its retransmit timer
 * (retransmission.ts). ECMP collisions, contention between groups, worn and flapping cables all are
 * shares of links.
 */
import { EventQueue, type Seconds, TriremeError } from "@trireme/core";
import { deviceRoutes } from "@trireme/collectives";
import { type Cluster, FlowRates, type RoutingPolicy, linkBetween } from "@trireme/topology";
import {
  type CongestionControl,
  checkControl,
  idealControl,
  rateAfter,
  sentAfter,
  timeFor,
} from "./congestion.ts";
import { type Retransmission, givesUp, ncclRetransmission, resumes } from "./retransmission.ts";
import { type CableChange, type TrafficFlow, checkTraffic } from "./traffic.ts";

/** What is simulated. */
export interface FlowSimulationOptions {
  readonly cluster: Cluster;
  readonly flows: readonly TrafficFlow[];
  /** How switches choose among ways; ECMP with seed 0 when left out. */
  readonly policy?: RoutingPolicy;
  readonly changes?: readonly CableChange[];
  /** `idealControl` when left out. */
  readonly control?: CongestionControl;
  /** `ncclRetransmission` when left out. */
  readonly retransmission?: Retransmission;
}

/** What came of it. */
export interface FlowSimulation {
  /** End of each flow, the latency of its way included; Infinity where it failed. */
  readonly ends: Float64Array;
  /** When the last flow of each group ended. */
  readonly groups: ReadonlyMap<number, Seconds>;
  /** Connections that used up their retries, and when. */
  readonly failures: readonly { readonly flow: number; readonly at: Seconds }[];
  /** Bytes that each link carried: cable c is links 2c and 2c + 1, links of hosts follow. */
  readonly linkBytes: Float64Array;
  /** Times at which rates changed. */
  readonly events: number;
}

/**
 * Simulates traffic to its end.
 * @throws TriremeError "FLOW" for a flow with a size or start that is none, "LINK_STATE" for a change
 * of a cable that the fabric has not, "ROUTE" where no way leads.
 */
export function simulateFlows(o: FlowSimulationOptions): FlowSimulation {
  return new Flows(o).run();
}

// What an event means: payload = number × 4 + event. Ends of transfers have no events: they move.
const event = { start: 0, change: 1, resume: 2, fail: 3 } as const;

class Flows {
  readonly #flows: readonly TrafficFlow[];
  readonly #cluster: Cluster;
  readonly #changes: readonly CableChange[];
  readonly #control: CongestionControl;
  readonly #retransmission: Retransmission;
  readonly #links: readonly (readonly number[])[];
  readonly #whole: Float64Array;
  readonly #fraction: Float64Array;
  readonly #rates: FlowRates;
  readonly #queue: EventQueue;
  /** Numbers of flows under way. */
  readonly #running: number[] = [];
  /** Number in `#rates`; -1 when not running. */
  readonly #entry: Int32Array;
  readonly #left: Float64Array;
  readonly #share: Float64Array;
  readonly #from: Float64Array;
  /** Least bandwidth on the way, when all is whole. */
  readonly #line: Float64Array;
  readonly #resumeAt: Float64Array;
  readonly #failAt: Float64Array;
  readonly #ends: Float64Array;
  readonly #linkBytes: Float64Array;
  readonly #failures: { flow: number; at: Seconds }[] = [];
  #now: Seconds = 0;
  #events = 0;

  constructor(o: FlowSimulationOptions) {
    const { cluster, flows, changes = [], control = idealControl } = o;
    checkControl(control);
    checkTraffic(flows, changes, cluster.fabric?.graph.cables ?? 0);
    const pairs = { from: flows.map((f) => f.from), to: flows.map((f) => f.to) };
    const { capacities, links } = deviceRoutes(cluster, pairs, o.policy);
    this.#flows = flows;
    this.#cluster = cluster;
    this.#changes = changes;
    this.#control = control;
    this.#retransmission = o.retransmission ?? ncclRetransmission;
    this.#links = links;
    this.#whole = capacities;
    this.#fraction = new Float64Array(capacities.length).fill(1);
    this.#rates = new FlowRates(capacities);
    this.#queue = new EventQueue(flows.length + changes.length + 16);
    const count = flows.length;
    this.#entry = new Int32Array(count).fill(-1);
    this.#left = Float64Array.from(flows, (f) => f.bytes);
    this.#share = new Float64Array(count);
    this.#from = new Float64Array(count);
    this.#line = Float64Array.from(links, (way) =>
      way.reduce((least, link) => Math.min(least, capacities[link]!), Infinity),
    );
    this.#resumeAt = new Float64Array(count);
    this.#failAt = new Float64Array(count).fill(-1);
    this.#ends = new Float64Array(count).fill(Infinity);
    this.#linkBytes = new Float64Array(capacities.length);
    for (const [i, f] of flows.entries()) this.#queue.push(f.start ?? 0, i * 4 + event.start);
    for (const [i, c] of changes.entries()) this.#queue.push(c.at, i * 4 + event.change);
  }

  run(): FlowSimulation {
    for (;;) {
      const over = this.#nextEnd();
      const next = Math.min(over, this.#queue.next);
      if (next === Infinity) break;
      this.#events++;
      this.#move(next);
      if (over <= this.#queue.next) this.#finishDone();
      while (this.#queue.size > 0 && this.#queue.next <= this.#now) this.#take(this.#queue.pop());
      this.#settle();
    }
    if (this.#running.length > 0) {
      throw new TriremeError(
        "FLOW",
        `${this.#running.length} flows stand still on links that stay down`,
      );
    }
    const groups = new Map<number, Seconds>();
    for (const [i, { group = 0 }] of this.#flows.entries()) {
      groups.set(group, Math.max(groups.get(group) ?? 0, this.#ends[i]!));
    }
    return {
      ends: this.#ends,
      groups,
      failures: this.#failures,
      linkBytes: this.#linkBytes,
      events: this.#events,
    };
  }

  #nextEnd(): Seconds {
    let next = Infinity;
    for (const i of this.#running) {
      const time = timeFor(this.#control, this.#from[i]!, this.#share[i]!, this.#left[i]!);
      if (this.#now + time < next) next = this.#now + time;
    }
    return next;
  }

  /** Lets time pass: everything under way sends. */
  #move(to: Seconds): void {
    const time = to - this.#now;
    for (const i of this.#running) {
      const [from, share] = [this.#from[i]!, this.#share[i]!];
      const sent = Math.min(this.#left[i]!, sentAfter(this.#control, from, share, time));
      this.#left[i]! -= sent;
      this.#from[i] = rateAfter(this.#control, from, share, time);
      for (const link of this.#links[i]!) this.#linkBytes[link]! += sent;
    }
    this.#now = to;
  }

  #finishDone(): void {
    for (let k = this.#running.length - 1; k >= 0; k--) {
      const i = this.#running[k]!;
      // A billionth of a flow, or what a nanosecond moves, is rounding, not payload.
      const rest = Math.max(1e-9 * this.#flows[i]!.bytes, 1e-12 * this.#share[i]!);
      if (this.#left[i]! > rest) continue;
      for (const link of this.#links[i]!) this.#linkBytes[link]! += this.#left[i]!;
      this.#left[i] = 0;
      this.#remove(k);
      this.#end(i);
    }
  }

  #end(i: number): void {
    const { from, to } = this.#flows[i]!;
    const latency = from === to ? 0 : linkBetween(this.#cluster, from, to).latency;
    this.#ends[i] = this.#now + latency;
  }

  #remove(k: number): void {
    const i = this.#running[k]!;
    this.#rates.remove(this.#entry[i]!);
    this.#entry[i] = -1;
    this.#running[k] = this.#running.at(-1)!;
    this.#running.pop();
  }

  #take(payload: number): void {
    const i = payload >> 2;
    switch (payload & 3) {
      case event.start:
        this.#from[i] = this.#control.start * this.#line[i]!;
        if (this.#left[i] === 0 || this.#links[i]!.length === 0) this.#end(i);
        else if (this.#broken(i)) this.#lose(i);
        else this.#enter(i);
        break;
      case event.change:
        this.#change(this.#changes[i]!);
        break;
      case event.resume:
        if (this.#resumeAt[i] !== this.#now || this.#entry[i]! >= 0) break;
        this.#failAt[i] = -1;
        if (this.#broken(i)) this.#lose(i);
        else this.#enter(i);
        break;
      default:
        if (this.#failAt[i] !== this.#now) break;
        this.#failures.push({ flow: i, at: this.#now });
    }
  }

  #enter(i: number): void {
    this.#entry[i] = this.#rates.add(this.#links[i]!);
    this.#running.push(i);
  }

  #change({ cable, fraction }: CableChange): void {
    for (const link of [2 * cable, 2 * cable + 1]) {
      this.#fraction[link] = fraction;
      this.#rates.setCapacity(link, this.#whole[link]! * fraction);
    }
    if (fraction > 0) return;
    for (let k = this.#running.length - 1; k >= 0; k--) {
      const i = this.#running[k]!;
      if (!this.#broken(i)) continue;
      this.#remove(k);
      this.#lose(i);
    }
  }

  #broken(i: number): boolean {
    return this.#links[i]!.some((link) => this.#fraction[link] === 0);
  }

  /** A flow loses packets now: it goes on at the first retry that finds its way whole, or fails. */
  #lose(i: number): void {
    const up = this.#repaired(i);
    const again = up === Infinity ? undefined : resumes(this.#retransmission, this.#now, up);
    this.#from[i] = this.#control.start * this.#line[i]!;
    if (again === undefined) {
      this.#failAt[i] = givesUp(this.#retransmission, this.#now);
      this.#queue.push(this.#failAt[i], i * 4 + event.fail);
    } else {
      this.#resumeAt[i] = again;
      this.#queue.push(again, i * 4 + event.resume);
    }
  }

  /** When all links of a flow's way work again, by the changes to come; those of one instant in order. */
  #repaired(i: number): Seconds {
    const state = new Map<number, number>();
    for (const link of this.#links[i]!) {
      if (link < 2 * (this.#cluster.fabric?.graph.cables ?? 0)) {
        state.set(link >> 1, this.#fraction[link]!);
      }
    }
    const coming = this.#changes
      .filter((c) => c.at > this.#now && state.has(c.cable))
      .sort((a, b) => a.at - b.at);
    for (const { at, cable, fraction } of coming) {
      state.set(cable, fraction);
      if ([...state.values()].every((f) => f > 0)) return at;
    }
    return Infinity;
  }

  /** Shares after a change; a control keeps a little below a link that it shares. */
  #settle(): void {
    for (const i of this.#running) {
      const fair = this.#rates.rate(this.#entry[i]!);
      const shared = fair < this.#line[i]! * (1 - 1e-9);
      this.#share[i] = shared ? fair * this.#control.efficiency : fair;
    }
  }
}

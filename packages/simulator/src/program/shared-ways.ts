/**
 * Communication that shares links: a message or collective alone takes the time that it is declared
 * with; those that are under way at once have max-min fair rates over the links that they have in common
 * (topology's `FlowRates`), anew whenever one starts or ends.
 */
import { type EventQueue, type Seconds, TriremeError } from "@trireme/core";
import { FlowRates } from "@trireme/topology";
import type { Ways } from "./own-ways.ts";
import { playEvent } from "./play-event.ts";
import type { Program } from "./program.ts";

/** Where a message or collective goes. */
export interface SharedRoute {
  readonly links: ArrayLike<number>;
  /** Bytes that it moves over each link at its own full speed, of what it moves over the link of weight 1. */
  readonly weights: ArrayLike<number>;
  /** Bytes per second that it moves over a link of weight 1 when alone. */
  readonly rate: number;
}

/** The links of a program's communication. */
export interface SharedNetwork {
  /** Of every link, in bytes per second. */
  readonly capacities: ArrayLike<number>;
  /** The way of a message or a collective; undefined where it shares nothing with others. */
  message(id: number): SharedRoute | undefined;
  collective(id: number): SharedRoute | undefined;
}

/** A rate so little below that of a transfer alone is that. */
const rounding = 1e-9;

export class SharedWays implements Ways {
  readonly left: Float64Array;
  readonly #queue: EventQueue;
  readonly #network: SharedNetwork;
  readonly #messages: ReturnType<Program["messages"]>;
  readonly #collectives: ReturnType<Program["collectives"]>;
  readonly #rates: FlowRates;
  /** Messages that wait for the way out of each rank, the first on it. */
  readonly #leaving: number[][];
  /** Transfers under way: each has a link of its own, as wide as it is fast alone. */
  readonly #firstOwn: number;
  readonly #unused: number[] = [];
  readonly #flow: Int32Array;
  readonly #transferOf = new Map<number, number>();
  /** What each moves: twice a message's number, or a collective's and 1. */
  readonly #what: Int32Array;
  /** Its rate alone, what is left of it in seconds at that, at which part of it, since when, and its end. */
  readonly #alone: Float64Array;
  readonly #rest: Float64Array;
  readonly #speed: Float64Array;
  readonly #since: Float64Array;
  readonly #end: Float64Array;

  constructor(program: Program, queue: EventQueue, network: SharedNetwork) {
    this.#queue = queue;
    this.#network = network;
    this.#messages = program.messages();
    this.#collectives = program.collectives();
    this.left = new Float64Array(this.#messages.from.length);
    this.#leaving = Array.from({ length: program.ranks }, () => []);
    // A rank has a message on its way out, and a collective of each stream.
    const most = program.ranks * (program.streams + 1);
    this.#firstOwn = network.capacities.length;
    const capacities = new Float64Array(this.#firstOwn + most);
    capacities.set(Float64Array.from(network.capacities));
    this.#rates = new FlowRates(capacities);
    for (let transfer = most - 1; transfer >= 0; transfer--) this.#unused.push(transfer);
    this.#flow = new Int32Array(most);
    this.#what = new Int32Array(most);
    this.#alone = new Float64Array(most);
    this.#rest = new Float64Array(most);
    this.#speed = new Float64Array(most);
    this.#since = new Float64Array(most);
    this.#end = new Float64Array(most).fill(Number.NaN);
  }

  send(rank: number, id: number): void {
    const leaving = this.#leaving[rank]!;
    leaving.push(id);
    if (leaving.length === 1) this.#leave(id);
  }

  collect(id: number): void {
    const route = this.#network.collective(id);
    this.#begin(2 * id + 1, this.#collectives.duration[id]!, route);
  }

  settle(): void {
    const { now } = this.#queue;
    for (const flow of this.#rates.changed()) {
      const transfer = this.#transferOf.get(flow)!;
      const part = this.#rates.rate(flow) / this.#alone[transfer]!;
      const speed = part > 1 - rounding ? 1 : part;
      if (speed === this.#speed[transfer]) continue;
      if (!(speed > 0)) {
        throw new TriremeError("NETWORK", "a transfer stands still on a link without bandwidth");
      }
      const moved = (now - this.#since[transfer]!) * this.#speed[transfer]!;
      this.#rest[transfer] = Math.max(0, this.#rest[transfer]! - moved);
      this.#speed[transfer] = speed;
      this.#since[transfer] = now;
      const end = now + this.#rest[transfer] / speed;
      this.#end[transfer] = end;
      this.#queue.push(end, playEvent(transfer, "network"));
    }
  }

  moved(transfer: number): void {
    // Its rate has changed since this was foreseen, or it is over.
    if (this.#end[transfer] !== this.#queue.now) return;
    const flow = this.#flow[transfer]!;
    this.#rates.remove(flow);
    this.#transferOf.delete(flow);
    this.#end[transfer] = Number.NaN;
    this.#unused.push(transfer);
    this.#over(this.#what[transfer]!);
  }

  #leave(id: number): void {
    this.left[id] = this.#queue.now;
    this.#begin(2 * id, this.#messages.duration[id]!, this.#network.message(id));
  }

  #begin(what: number, duration: Seconds, route: SharedRoute | undefined): void {
    const transfer = this.#unused.pop()!;
    const own = this.#firstOwn + transfer;
    // What shares nothing has its own link alone.
    const { links, weights, rate } = route ?? { links: [], weights: [], rate: 1 };
    this.#rates.setCapacity(own, rate);
    const flow = this.#rates.add([...Array.from(links), own], [...Array.from(weights), 1]);
    this.#flow[transfer] = flow;
    this.#transferOf.set(flow, transfer);
    this.#what[transfer] = what;
    this.#alone[transfer] = rate;
    this.#rest[transfer] = duration;
    this.#speed[transfer] = 0;
    this.#since[transfer] = this.#queue.now;
  }

  #over(what: number): void {
    const { now } = this.#queue;
    const id = what >> 1;
    if (what % 2 === 1) {
      this.#queue.push(now, playEvent(id, "collected"));
      return;
    }
    this.#queue.push(now + this.#messages.latency[id]!, playEvent(id, "arrived"));
    const leaving = this.#leaving[this.#messages.from[id]!]!;
    leaving.shift();
    if (leaving.length > 0) this.#leave(leaving[0]!);
  }
}

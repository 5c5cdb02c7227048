/**
 * An agent's side of the protocol, without its processes: which generation it is in, what its ranks
 * may begin, what it reports. It obeys newer orders only, and says that it has left a generation
 * once its workers are gone.
 */
import type { Order } from "@trireme/fault-tolerance";
import type { Launch } from "./launch.ts";
import type { AgentReport, Answer, Failure, RunEnd } from "./message.ts";

/** What is to be done after an answer. */
export type AgentAction =
  | { readonly kind: "none" }
  /** Start a worker for every local rank. */
  | { readonly kind: "start"; readonly launch: Launch; readonly order: Order & { kind: "train" } }
  /** Take every worker down, check the host where the order asks for it, then call `left`. */
  | { readonly kind: "leave"; readonly check: boolean }
  /** Take every worker down and go. */
  | { readonly kind: "end"; readonly end: RunEnd }
  /** Ranks that wait are to ask `mayBegin` again. */
  | { readonly kind: "release" };

/** What an agent is and stays. */
export interface AgentIdentity {
  readonly host: number;
  readonly incarnation: string;
  readonly ranks: number;
}

const nothing: AgentAction = { kind: "none" };
/** The first failures tell; those after them are what follows from them. */
const reportedFailures = 16;

export class AgentMachine {
  readonly #identity: AgentIdentity;
  #generation = 0;
  #training = false;
  /** Generation to report once the workers are gone. */
  #leaving: number | undefined;
  #firstRank = 0;
  #failures: readonly Failure[] = [];
  /** Last step begun, finished and saved, per local rank. */
  readonly #begun: Float64Array;
  readonly #done: Float64Array;
  readonly #saved: Float64Array;
  readonly #ended = new Set<number>();
  #stop: { readonly bound: number; readonly after?: number } | undefined;

  constructor(identity: AgentIdentity) {
    this.#identity = identity;
    this.#begun = new Float64Array(identity.ranks);
    this.#done = new Float64Array(identity.ranks);
    this.#saved = new Float64Array(identity.ranks);
  }

  get generation(): number {
    return this.#generation;
  }

  /** Global rank of a local one. */
  rank(localRank: number): number {
    return this.#firstRank + localRank;
  }

  /** Last step that a rank has begun. */
  begun(localRank: number): number {
    return this.#begun[localRank]!;
  }

  /** Takes an answer; the action is to be carried out before the next one is taken. */
  receive({ order, launch, stop, end }: Answer): AgentAction {
    if (end !== undefined) return { kind: "end", end };
    if (order.kind === "evict") {
      const reason = `host ${this.#identity.host} was evicted: ${order.reason}`;
      return { kind: "end", end: { ok: false, reason, step: least(this.#saved) } };
    }
    if (this.#leaving !== undefined || order.generation < this.#generation) return nothing;
    if (order.kind === "halt") {
      // A halt of the generation that trains here is the one that came before it, late.
      if (order.generation === this.#generation) return nothing;
      this.#leaving = order.generation;
      return { kind: "leave", check: order.check ?? false };
    }
    if (this.#training) {
      if (order.generation === this.#generation) return this.#obeyStop(stop);
      // Workers of an older generation go first; the report after that is answered with this order.
      this.#leaving = this.#generation;
      return { kind: "leave", check: false };
    }
    const member = launch?.members.find((each) => each.host === this.#identity.host);
    if (launch === undefined || member === undefined) return nothing;
    this.#generation = order.generation;
    this.#training = true;
    this.#firstRank = member.firstRank;
    this.#standAt(order.step - 1);
    return { kind: "start", launch, order };
  }

  /** The workers are gone; without a reason the host is fit to go on. */
  left(unfit?: string): void {
    if (this.#leaving === undefined) return;
    if (this.#leaving > this.#generation) this.#standAt(0);
    this.#generation = this.#leaving;
    this.#leaving = undefined;
    this.#training = false;
    this.#failures =
      unfit === undefined
        ? []
        : [{ kind: "declared", rank: this.#firstRank, scope: "host", reason: unfit }];
    this.#ended.clear();
    this.#stop = undefined;
  }

  #standAt(step: number): void {
    for (const steps of [this.#begun, this.#done, this.#saved]) steps.fill(step);
  }

  #obeyStop(stop: Answer["stop"]): AgentAction {
    if (stop === undefined) return nothing;
    this.#stop ??= { bound: this.#begun.reduce((a, b) => Math.max(a, b)) };
    if (stop.kind === "hold" || this.#stop.after !== undefined) return nothing;
    this.#stop = { ...this.#stop, after: stop.step };
    return { kind: "release" };
  }

  /** Whether a rank may begin a step: yes, never (it ends), or not known before the stop is agreed on. */
  mayBegin(localRank: number, step: number): "go" | "end" | "wait" {
    this.#raise(this.#done, localRank, step - 1);
    if (this.#stop !== undefined && step > this.#stop.bound) {
      if (this.#stop.after === undefined) return "wait";
      if (step > this.#stop.after) return "end";
    }
    this.#raise(this.#begun, localRank, step);
    return "go";
  }

  /** The state after a step is safe on this rank. */
  saved(localRank: number, step: number): void {
    this.#raise(this.#done, localRank, step);
    this.#raise(this.#saved, localRank, step);
  }

  #raise(steps: Float64Array, localRank: number, step: number): void {
    if (this.#training) steps[localRank] = Math.max(step, steps[localRank]!);
  }

  /** A rank is lost; told in every report until the generation is left. */
  failed(failure: Failure): void {
    // What workers do while they are taken down is no news.
    if (this.#training && this.#leaving === undefined) {
      this.#failures = [...this.#failures, failure];
    }
  }

  /** A rank ended by itself, with code 0. */
  ended(localRank: number): void {
    if (!this.#training || this.#leaving !== undefined) return;
    this.#ended.add(localRank);
    this.#raise(this.#done, localRank, this.#begun[localRank]!);
  }

  report(endpoint: AgentReport["endpoint"]): AgentReport {
    const { host, incarnation, ranks } = this.#identity;
    return {
      kind: "report",
      host,
      incarnation,
      generation: this.#generation,
      begun: this.#training,
      done: least(this.#done),
      saved: least(this.#saved),
      failures: this.#failures.slice(0, reportedFailures),
      finished: this.#training && this.#ended.size === ranks,
      endpoint,
      ...(this.#stop === undefined ? {} : { bound: this.#stop.bound }),
    };
  }
}

function least(steps: Float64Array): number {
  return steps.reduce((a, b) => Math.min(a, b));
}

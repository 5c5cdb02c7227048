/** A host's agent, which holds to the five rules of the protocol, and the worker it minds. */
import type { Seconds } from "@trireme/core";

import type { Order, Report } from "../recovery/protocol.ts";

/** What the agent is in its generation: `left` by itself, it may never come back to it. */
export type AgentState = "idle" | "joining" | "training" | "left";

export class SimulatedAgent {
  readonly host: number;
  /** Seconds of this host's clock in one of true time. */
  readonly rate: number;
  up = true;
  broken = false;
  wedged = false;
  state: AgentState = "idle";
  /** On disk: it outlives the agent. */
  generation = 0;
  /** Grows with each start of the agent: answers to an earlier one are dropped. */
  incarnation = 0;
  done = 0;
  saved = 0;
  /** When its last save so far is durable. */
  saveEnds: Seconds = 0;
  /** Step at which it saw the loss spike; 0 for none. */
  spike = 0;
  /** When it leaves by itself, in true time, unless an order to train comes. */
  leaseEnds: Seconds = Infinity;
  /** The order it joined its generation by. */
  joined: Extract<Order, { kind: "train" }> | undefined;

  constructor(host: number, rate: number) {
    this.host = host;
    this.rate = rate;
  }

  /** What it says now. `everyStep`: a step done is a step saved. */
  report(everyStep: boolean): Report {
    const { host, generation, done, saved, spike } = this;
    const base = everyStep ? { host, generation, done } : { host, generation, done, saved };
    if (this.broken) return { ...base, fault: "host", reason: "self-check failed" };
    if (this.state === "left") return { ...base, fault: "software" };
    if (spike > 0) return { ...base, done: spike, fault: "loss" };
    return base;
  }

  /** Leaves its generation without an order. */
  fail(): void {
    if (this.generation > 0 && this.state !== "idle") this.state = "left";
  }

  /** The agent or its host starts again; only the disk is left of it. */
  boot(): void {
    this.up = true;
    this.incarnation++;
    this.done = 0;
    this.saved = 0;
    this.spike = 0;
    // It cannot know whether it had begun to train in the generation on its disk.
    this.state = this.generation > 0 ? "left" : "idle";
  }

  /**
   * Takes an order; true where the agent has changed and is to report at once.
   * @param lease When a lease that this order grants ends.
   */
  obey(order: Order, lease: Seconds): boolean {
    if (this.wedged) return false;
    if (order.kind === "evict") {
      this.fail();
      return false;
    }
    if (order.generation < this.generation) return false;
    const greater = order.generation > this.generation;
    if (greater) {
      this.generation = order.generation;
      this.done = 0;
      this.saved = 0;
      this.spike = 0;
      this.state = "idle";
    }
    if (order.kind === "halt") return greater;
    if (this.state === "left") return false;
    this.leaseEnds = Math.max(this.leaseEnds === Infinity ? 0 : this.leaseEnds, lease);
    if (this.state !== "idle") return false;
    this.state = "joining";
    this.joined = order;
    return greater;
  }
}

/**
 * The recovery state machine. Reports of agents and the time go in, orders come out: no clock, no
 * I/O. Everything an agent needs is in the order that answers its report, so lost, late, doubled or
 * reordered messages are harmless: the next report is answered by the state of then.
 *
 * Safety rests on training being collective: a step needs every member of a generation. A new
 * generation starts only once each member it keeps has left the old one, and it keeps at least one.
 */
import { TriremeError, type Seconds } from "@trireme/core";

/** What an agent says, again and again: also its heartbeat. */
export interface Report {
  readonly host: number;
  /** The greatest generation the agent has been ordered into; it never goes back. */
  readonly generation: number;
  /** The last step it finished in that generation; 0 from the halt until a step is done. */
  readonly done: number;
  /** Evidence of a fault: of the host itself (evict it) or of the software (restart in place). */
  readonly fault?: "host" | "software";
}

export type Order =
  | { readonly kind: "train"; readonly generation: number; readonly step: number }
  /** Leave every generation below this one, and wait. */
  | { readonly kind: "halt"; readonly generation: number }
  | { readonly kind: "evict"; readonly reason: string };

export interface ControllerOptions {
  readonly hosts: readonly number[];
  readonly standbys: readonly number[];
  /** Silence after which a member is evicted. */
  readonly deadline: Seconds;
  /** Fewest hosts that can train (data parallelism shrinks to here); 1 by default. */
  readonly minimum?: number;
  /** Software faults in a row without a committed step before it is called a crash loop; 3. */
  readonly restarts?: number;
}

/** All that must outlive the controller: store it before sending the orders that follow from it. */
export interface ControllerRecord {
  readonly phase: "training" | "halting" | "stopped";
  readonly generation: number;
  readonly committed: number;
  readonly members: readonly number[];
  readonly standbys: readonly number[];
  /** Evicted hosts with the evidence against each. */
  readonly evicted: ReadonlyMap<number, string>;
  readonly attempts: number;
  readonly reason?: string;
}

export class RecoveryController {
  readonly #options: Required<ControllerOptions>;
  #record: ControllerRecord;
  readonly #heard = new Map<number, Seconds>();
  readonly #done = new Map<number, number>();
  readonly #left = new Set<number>();

  /** @param record State of a controller that crashed; a new run without it. */
  constructor(options: ControllerOptions, now: Seconds, record?: ControllerRecord) {
    this.#options = { minimum: 1, restarts: 3, ...options };
    const { hosts, standbys, minimum, deadline } = this.#options;
    if (hosts.length < Math.max(1, minimum)) {
      throw new TriremeError(
        "CONTROLLER",
        `${hosts.length} hosts, but at least ${Math.max(1, minimum)} must train`,
      );
    }
    if (!(deadline > 0)) {
      throw new TriremeError("CONTROLLER", `deadline = ${deadline} s must be above 0`);
    }
    const all = [...hosts, ...standbys];
    if (new Set(all).size !== all.length) {
      throw new TriremeError(
        "CONTROLLER",
        `hosts and standbys [${all.join(", ")}] name a host twice`,
      );
    }
    this.#record = record ?? {
      phase: "training",
      generation: 1,
      committed: 0,
      members: hosts,
      standbys,
      evicted: new Map(),
      attempts: 0,
    };
    // Silence is counted from now: what was heard before a crash is not known.
    for (const host of this.#record.members) this.#heard.set(host, now);
  }

  get record(): ControllerRecord {
    return this.#record;
  }

  /** When `tick` has next something to do if nobody reports; Infinity where nothing is awaited. */
  get next(): Seconds {
    if (this.#record.phase === "stopped") return Infinity;
    const last = this.#record.members.map((host) => this.#heard.get(host)!);
    return last.reduce((a, b) => Math.min(a, b), Infinity) + this.#options.deadline;
  }

  /** Takes a report; the order is its answer. */
  report(report: Report, now: Seconds): Order {
    const { host, generation, done, fault } = report;
    const state = this.#record;
    if (state.evicted.has(host)) return { kind: "evict", reason: state.evicted.get(host)! };
    this.#heard.set(host, Math.max(now, this.#heard.get(host) ?? now));
    if (state.phase !== "stopped" && state.members.includes(host)) {
      if (fault === "host") this.#recover(new Map([[host, "reported a host fault"]]));
      else if (generation === state.generation) {
        if (state.phase === "halting") this.#left.add(host);
        else if (fault === "software") this.#recover(new Map());
        else this.#finish(host, done);
      }
      this.#resume(now);
    }
    return this.#order(host);
  }

  /** Lets time pass: hosts silent for the deadline are evicted. */
  tick(now: Seconds): void {
    if (this.#record.phase === "stopped") return;
    const silent = this.#record.members.filter((host) => !this.#alive(host, now));
    if (silent.length > 0) {
      this.#recover(
        new Map(silent.map((host) => [host, `silent for ${this.#options.deadline} s`])),
      );
    }
    this.#resume(now);
  }

  #alive(host: number, now: Seconds): boolean {
    return now - (this.#heard.get(host) ?? -Infinity) < this.#options.deadline;
  }

  #finish(host: number, done: number): void {
    this.#done.set(host, Math.max(done, this.#done.get(host) ?? 0));
    const { members, committed } = this.#record;
    const least = members.reduce((a, each) => Math.min(a, this.#done.get(each) ?? 0), Infinity);
    if (least > committed) this.#record = { ...this.#record, committed: least, attempts: 0 };
  }

  #recover(suspects: ReadonlyMap<number, string>): void {
    const state = this.#record;
    const software = suspects.size === 0;
    const attempts = state.attempts + (software ? 1 : 0);
    const members = state.members.filter((host) => !suspects.has(host));
    const evicted = new Map([...state.evicted, ...suspects]);
    // A host lost while halting needs no further generation: the one to come has not begun.
    const generation = state.generation + (state.phase === "training" ? 1 : 0);
    this.#record = { ...state, phase: "halting", generation, members, evicted, attempts };
    if (state.phase === "training") this.#left.clear();
    this.#done.clear();
    if (attempts > this.#options.restarts) {
      this.#stop(`crash loop: ${attempts} software faults at step ${state.committed + 1}`);
    } else if (members.length === 0) {
      this.#stop(`no host of generation ${state.generation} is left to fence it`);
    }
  }

  #stop(reason: string): void {
    this.#record = { ...this.#record, phase: "stopped", reason };
  }

  #resume(now: Seconds): void {
    const { phase, members, standbys } = this.#record;
    if (phase !== "halting" || members.some((host) => !this.#left.has(host))) return;
    const ready = standbys.filter((host) => this.#alive(host, now));
    const hired = ready.slice(0, Math.max(0, this.#options.hosts.length - members.length));
    const next = [...members, ...hired];
    if (next.length < this.#options.minimum) {
      this.#stop(`${next.length} hosts are left, but at least ${this.#options.minimum} must train`);
      return;
    }
    const rest = standbys.filter((host) => !hired.includes(host));
    this.#record = { ...this.#record, phase: "training", members: next, standbys: rest };
  }

  #order(host: number): Order {
    const { phase, generation, committed, members, evicted } = this.#record;
    const reason = evicted.get(host);
    if (reason !== undefined) return { kind: "evict", reason };
    if (phase === "training" && members.includes(host)) {
      return { kind: "train", generation, step: committed + 1 };
    }
    // A standby waits below the generation that may hire it.
    return {
      kind: "halt",
      generation: members.includes(host) || phase === "stopped" ? generation : 0,
    };
  }
}

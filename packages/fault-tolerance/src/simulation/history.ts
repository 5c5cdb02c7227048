/** Plays a script: agents, network, storage and controllers, all on virtual time and one seed. */
import { createRng, type Rng, type Seconds } from "@trireme/core";

import { RecoveryController } from "../recovery/controller.ts";
import type { Order } from "../recovery/protocol.ts";
import { type ControllerRecord, firstRecord } from "../recovery/record.ts";
import { SimulatedAgent } from "./agent.ts";
import { EventLoop } from "./event-loop.ts";
import { Generations } from "./generations.ts";
import { type HistoryScript, type Mishap, drawScript } from "./script.ts";
import { type ControllerFactory, RecordStore, Seat, type TraceEntry } from "./seat.ts";
import { Witness } from "./witness.ts";

export interface HistoryOptions {
  /** The controller under test; `RecoveryController` by default. */
  readonly controller?: ControllerFactory;
  /** A process dies at this write of a record, just before or just after it. */
  readonly deadlyWrite?: { readonly write: number; readonly when: "before" | "after" };
}

export interface History {
  readonly script: HistoryScript;
  /** The last record stored. */
  readonly record: ControllerRecord;
  /** Everything that controllers were told, in order, and what they answered. */
  readonly trace: readonly TraceEntry[];
  /** Times a record was stored. */
  readonly writes: number;
  readonly end: Seconds;
}

/** Seconds after the last mishap within which training must go on, or the run have stopped. */
const recoveryBound: Seconds = 1200;

/**
 * One random history.
 * @throws RuleBroken when one of the four rules is broken; the seed replays it exactly.
 */
export function simulateHistory(seed: number, options: HistoryOptions = {}): History {
  return playScript(drawScript(seed), options);
}

/** Plays a script, of a seed or written by hand. */
export function playScript(script: HistoryScript, options: HistoryOptions = {}): History {
  return new Play(script, options).run();
}

class Play {
  readonly #script: HistoryScript;
  readonly #options: HistoryOptions;
  readonly #rng: Rng;
  readonly #loop = new EventLoop();
  readonly #agents: readonly SimulatedAgent[];
  readonly #witness: Witness;
  readonly #generations: Generations;
  readonly #store: RecordStore;
  readonly #trace: TraceEntry[] = [];
  readonly #seats: Seat[] = [];
  /** Until when messages of a host are lost on the way to the controller, and back. */
  readonly #mute: Float64Array;
  readonly #unheard: Float64Array;
  #version = 0;

  constructor(script: HistoryScript, options: HistoryOptions) {
    this.#script = script;
    this.#options = options;
    this.#rng = createRng(script.seed).fork(1);
    const all = [...script.options.hosts, ...script.options.standbys];
    this.#agents = all.map((host) => new SimulatedAgent(host, 0.9 + 0.2 * this.#rng.float()));
    const first = firstRecord(script.options.hosts, script.options.standbys);
    this.#store = new RecordStore(first);
    this.#witness = new Witness(script, this.#agents, first, this.#trace);
    this.#generations = new Generations({
      agents: this.#agents,
      loop: this.#loop,
      rng: this.#rng.fork(2),
      saveEvery: script.saveEvery,
      observer: this.#witness,
    });
    this.#witness.attach(this.#generations);
    this.#mute = new Float64Array(all.length);
    this.#unheard = new Float64Array(all.length);
  }

  run(): History {
    const { mishaps, quiet, heartbeat } = this.#script;
    this.#seat(0);
    for (const agent of this.#agents) {
      const beat = (): void => {
        this.#report(agent);
        this.#loop.after((heartbeat * (0.5 + this.#rng.float())) / agent.rate, beat);
      };
      this.#loop.after(heartbeat * this.#rng.float(), beat);
    }
    for (const { at, mishap } of mishaps) this.#loop.at(at, () => this.#befall(mishap));
    const stopped = (): boolean => this.#witness.record.phase === "stopped";
    this.#loop.run(quiet, stopped);
    this.#loop.run(quiet + recoveryBound, () => stopped() || this.#witness.recovered);
    this.#witness.ended(this.#loop.now);
    return {
      script: this.#script,
      record: this.#witness.record,
      trace: this.#trace,
      writes: this.#store.revision,
      end: this.#loop.now,
    };
  }

  #seat(skew: Seconds): void {
    const { deadlyWrites, quiet, options } = this.#script;
    const { deadlyWrite, controller } = this.#options;
    const seat = new Seat({
      seat: this.#seats.length,
      factory: controller ?? ((...all) => new RecoveryController(...all)),
      options,
      store: this.#store,
      witness: this.#witness,
      trace: this.#trace,
      now: this.#loop.now,
      skew,
      dies: (write, when) =>
        (deadlyWrite?.write === write && deadlyWrite.when === when) ||
        (this.#loop.now < quiet && deadlyWrites > 0 && this.#rng.float() < deadlyWrites),
    });
    this.#seats.push(seat);
    this.#timer(seat);
  }

  /** One timer a seat at a time: it finds out for itself whether it came too early. */
  #timer(seat: Seat): void {
    if (!seat.alive) return;
    this.#loop.at(Math.min(seat.next, this.#loop.now + 15), () => {
      const { now } = this.#loop;
      const due = seat.alive && seat.next <= now;
      if (due) this.#tell(seat, { kind: "tick" });
      // Once more may be rounding between two clocks; a hundred times at one time is no progress.
      seat.idle = due && seat.next <= now ? seat.idle + 1 : 0;
      if (seat.idle > 100) this.#witness.stuck(now);
      this.#timer(seat);
    });
  }

  #tell(seat: Seat, input: Parameters<Seat["tell"]>[0]): Order | undefined {
    const order = seat.tell(input, this.#loop.now);
    if (!seat.alive && !this.#seats.some((each) => each.alive)) {
      const skew = 20 * (this.#rng.float() - 0.5);
      this.#loop.after(10 * this.#rng.float(), () => this.#ensure(skew));
    }
    return order;
  }

  /** A controller is started where none is alive. */
  #ensure(skew: Seconds): void {
    if (!this.#seats.some((seat) => seat.alive)) this.#seat(skew);
  }

  /** A living seat; where two are, hosts reach now the one, now the other. */
  #reached(): Seat | undefined {
    const alive = this.#seats.filter((seat) => seat.alive);
    return alive.length < 2 ? alive[0] : alive[this.#rng.integer(alive.length)];
  }

  #send(run: () => void): void {
    const { loss, copies, delay } = this.#script.network;
    if (this.#rng.float() < loss) return;
    const times = this.#rng.float() < copies ? 2 : 1;
    for (let i = 0; i < times; i++) this.#loop.after(delay * this.#rng.float() ** 3, run);
  }

  #report(agent: SimulatedAgent): void {
    const { host, incarnation } = agent;
    if (!agent.up || this.#mute[host]! > this.#loop.now) return;
    const sent = this.#loop.now;
    const report = agent.report(this.#script.saveEvery === 0);
    this.#send(() => {
      const seat = this.#reached();
      if (seat === undefined) return;
      if (report.fault === "loss") this.#witness.lossReported(report.generation);
      const order = this.#tell(seat, { kind: "report", report });
      if (order === undefined) return;
      this.#send(() => {
        const here = agent.up && agent.incarnation === incarnation;
        if (here && this.#unheard[host]! <= this.#loop.now) this.#obey(agent, order, sent);
      });
    });
  }

  #obey(agent: SimulatedAgent, order: Order, sent: Seconds): void {
    const { generation, state } = agent;
    const { lease = Infinity } = this.#script.options;
    // A fifth less than the controller waits, by a clock that is a tenth off at most.
    const ends = sent + (0.8 * lease) / agent.rate;
    const changed = agent.obey(order, ends);
    const inside = state === "training" || state === "joining";
    if (inside && (agent.generation !== generation || agent.state === "left")) {
      this.#generations.left(agent.host, generation);
    }
    if (agent.state === "joining" && (changed || state !== "joining"))
      this.#generations.join(agent);
    if (order.kind === "train" && lease < Infinity) this.#loop.at(ends, () => this.#expire(agent));
    if (changed) this.#report(agent);
  }

  #expire(agent: SimulatedAgent): void {
    if (!agent.up || agent.leaseEnds > this.#loop.now) return;
    if (agent.state === "training" || agent.state === "joining") this.#generations.leave(agent);
  }

  #befall(mishap: Mishap): void {
    const { now } = this.#loop;
    const { quiet } = this.#script;
    switch (mishap.kind) {
      case "kill":
        for (const host of mishap.hosts) this.#kill(this.#agents[host]!, mishap.down);
        return;
      case "break":
        this.#agents[mishap.host]!.broken = true;
        this.#witness.hurt(mishap.host);
        return;
      case "crash":
        this.#generations.leave(this.#agents[mishap.host]!);
        return;
      case "hang":
        for (const collective of this.#generations.alive()) collective.frozen = true;
        return;
      case "wedge":
        this.#agents[mishap.host]!.wedged = true;
        this.#witness.hurt(mishap.host);
        return;
      case "cut":
        for (const host of mishap.hosts) {
          const until = Math.min(now + mishap.lasts, quiet);
          if (mishap.way !== "orders") this.#mute[host] = Math.max(this.#mute[host]!, until);
          if (mishap.way !== "reports") this.#unheard[host] = Math.max(this.#unheard[host]!, until);
        }
        return;
      case "restart":
        for (const seat of this.#seats) seat.alive = false;
        this.#loop.after(mishap.down, () => this.#ensure(mishap.skew));
        return;
      case "take-over": {
        const old = this.#seats.filter((seat) => seat.alive);
        this.#seat(mishap.skew);
        this.#loop.after(mishap.overlap, () => {
          for (const seat of old) seat.alive = false;
          this.#ensure(mishap.skew);
        });
        return;
      }
      case "poison":
      case "trap": {
        const { committed, skip } = this.#witness.record;
        const batch = committed + skip + mishap.ahead;
        this.#generations[mishap.kind === "trap" ? "traps" : "poisoned"].add(batch);
        return;
      }
      case "update": {
        const version = ++this.#version;
        if (mishap.bad) this.#generations.badVersions.add(version);
        this.#operate({ kind: "update", version, urgent: mishap.urgent });
        return;
      }
      case "suspect":
        this.#witness.name(mishap.hosts);
        this.#operate({ kind: "suspect", hosts: mishap.hosts, reason: "stack traces" });
        return;
      case "repair":
        for (const host of this.#witness.record.evicted.keys()) {
          const agent = this.#agents[host]!;
          agent.broken = false;
          agent.wedged = false;
          if (!agent.up) this.#boot(agent);
          this.#operate({ kind: "admit", host });
        }
    }
  }

  #operate(input: Parameters<Seat["tell"]>[0]): void {
    const seat = this.#reached();
    if (seat !== undefined) this.#tell(seat, input);
  }

  #kill(agent: SimulatedAgent, down: Seconds): void {
    if (!agent.up) return;
    agent.up = false;
    this.#generations.left(agent.host, agent.generation);
    if (down < Infinity) this.#loop.after(down, () => this.#boot(agent));
  }

  #boot(agent: SimulatedAgent): void {
    if (agent.up) return;
    agent.boot();
  }
}

/**
 * A run of weeks on virtual time, decided by the same controller as a live one. Hosts that are well
 * are not played: one cohort report stands for all that they would have said, at the times when it
 * matters, and a host is played by itself from just before something befalls it. Cost grows with
 * incidents, not with hosts × time. `transport: "full"` plays every heartbeat of every host instead,
 * with the same decisions at the same times.
 */
import { TriremeError, type Seconds } from "@trireme/core";

import { RecoveryController } from "../recovery/controller.ts";
import type { Order, Report } from "../recovery/protocol.ts";
import type { ControllerRecord } from "../recovery/record.ts";
import { Beats } from "./beats.ts";
import { checkRun } from "./check-run.ts";
import { EventLoop } from "./event-loop.ts";
import type { Incident } from "./incident.ts";
import { Progress } from "./progress.ts";
import type { GenerationSpan, RunInput, RunSummary } from "./run-input.ts";

/** A host that is played by itself. */
interface Soloist {
  readonly index: number;
  readonly host: number;
  up: boolean;
  generation: number;
  /** The generation it is leaving for, and the last one it joined. */
  leaving: number;
  joined: number;
  /** Incidents that still concern it: it does not go back into the cohort before they are over. */
  pending: number;
}

/** What it says besides: evidence, and as of when it speaks, now if left out. */
interface Said {
  readonly fault?: Exclude<Report["fault"], undefined>;
  readonly reason?: string;
  readonly as?: Seconds;
}

export class RunPlay {
  readonly #input: RunInput;
  readonly #controller: RecoveryController;
  readonly #loop = new EventLoop();
  readonly #beats: Beats;
  readonly #hosts: readonly number[];
  readonly #index = new Map<number, number>();
  readonly #solo = new Map<number, Soloist>();
  readonly #member: Uint8Array;
  readonly #broken = new Set<number>();
  readonly #spans: GenerationSpan[] = [];
  readonly #played: Progress[] = [];
  #record: ControllerRecord;
  /** Hosts by rank whose marks `#member` holds. */
  #ranks: readonly number[] = [];
  /** Those of the generation before. */
  #before: readonly number[] = [];
  /** When the present phase was decided. */
  #turned: Seconds = 0;
  #progress!: Progress;
  #cohortJoined: Seconds = Infinity;
  #updates = 0;

  constructor(input: RunInput) {
    checkRun(input);
    this.#input = input;
    const { options } = input;
    this.#hosts = [...options.hosts, ...options.standbys];
    for (const [index, host] of this.#hosts.entries()) this.#index.set(host, index);
    this.#member = new Uint8Array(this.#hosts.length);
    this.#beats = new Beats(this.#hosts.length, input.times.heartbeat);
    this.#controller = new RecoveryController(options, 0);
    this.#record = this.#controller.record;
    this.#begin(this.#record, 0);
    if (input.transport === "full") for (const host of this.#hosts) this.#apart(host);
    this.#sync();
  }

  run(): RunSummary {
    const { horizon, incidents, times } = this.#input;
    const stream = incidents[Symbol.iterator]();
    let next = stream.next();
    let last = 0;
    for (;;) {
      const due = this.#due;
      const at = Math.min(this.#loop.next, due);
      // A host must be played from a heartbeat before what befalls it.
      if (next.done !== true && next.value.time <= Math.min(at, horizon) + times.heartbeat) {
        const incident = next.value;
        if (!(incident.time >= last)) {
          const message = `incident at ${incident.time} s after one at ${last} s: sort them by time`;
          throw new TriremeError("RUN_INCIDENTS", message);
        }
        last = incident.time;
        this.#announce(incident);
        next = stream.next();
        continue;
      }
      if (this.#record.phase === "stopped" || at > horizon) break;
      if (this.#loop.next <= due) this.#loop.step();
      else this.#tick(due);
    }
    return this.#summary();
  }

  /** When the controller has something to do; never before now, whatever a clock may round. */
  get #due(): Seconds {
    return Math.max(this.#controller.next, this.#loop.now);
  }

  #tick(at: Seconds): void {
    this.#loop.at(at, () => {
      this.#sync();
      this.#controller.tick(at);
      this.#decided();
    });
    this.#loop.step();
  }

  /** Delivers what all the hosts that are not played would have said by now. */
  #sync(): void {
    if (this.#input.transport === "full") return;
    const { now } = this.#loop;
    const { phase, generation, committed } = this.#record;
    const except = [...this.#solo.keys()];
    const lasting = except.length < this.#hosts.length;
    const report = (reported: number, step: number): void => {
      const body = { generation: reported, done: step, saved: step, except, lasting };
      this.#controller.reportCohort(body, now);
    };
    if (!lasting) {
      report(0, 0);
    } else if (phase === "training") {
      // Each member has last spoken at its own time: what all have saved is what the first had.
      const heard = this.#beats.oldest(now, this.#inCohort);
      const { every } = this.#progress.input;
      const to = this.#progress.saved(heard);
      const keep = (this.#input.options.keep ?? 10) * every;
      for (let step = Math.max(committed + every, to - keep); step <= to; step += every) {
        report(generation, step);
      }
      report(generation, Math.max(committed, to));
    } else if (phase === "halting") {
      report(generation - (this.#cohortLeft <= now ? 0 : 1), 0);
    }
    this.#decided();
  }

  readonly #inCohort = (index: number): boolean =>
    this.#member[index] === 1 && !this.#solo.has(this.#hosts[index]!);

  /** When the last member of the cohort has left. */
  get #cohortLeft(): Seconds {
    return this.#beats.latest(this.#turned, this.#inCohort) + this.#input.times.leave;
  }

  /** Draws the consequences of a decision, if there was one. */
  #decided(): void {
    const last = this.#record;
    const next = this.#controller.record;
    if (next === last) return;
    const { now } = this.#loop;
    this.#record = next;
    const turned = next.phase !== last.phase || next.generation !== last.generation;
    if (turned || next.evicted !== last.evicted || next.standbys !== last.standbys) {
      this.#input.on?.({ at: now, record: next });
    }
    if (next.evicted !== last.evicted) {
      for (const host of next.evicted.keys()) if (!last.evicted.has(host)) this.#evicted(host);
    }
    if (next.phase !== "training" && last.phase === "training") {
      this.#end(next, now);
      this.#turned = now;
    }
    if (next.phase === "training" && last.phase !== "training") this.#begin(next, now);
    else if (next.phase === "halting") this.#awaitCohort();
  }

  #awaitCohort(): void {
    const { generation } = this.#record;
    const at = this.#cohortLeft;
    if (at === -Infinity) return;
    this.#loop.at(at, () => {
      if (this.#record.phase === "halting" && this.#record.generation === generation) this.#sync();
    });
  }

  #begin(record: ControllerRecord, now: Seconds): void {
    const { times } = this.#input;
    const { members, generation, committed } = record;
    const { checkpoint } = times;
    this.#turned = now;
    // Most ranks keep their host.
    const before = this.#ranks;
    this.#before = before;
    this.#ranks = members;
    for (let rank = 0; rank < before.length; rank++) {
      if (members[rank] !== before[rank]) this.#member[this.#index.get(before[rank]!)!] = 0;
    }
    for (let rank = 0; rank < members.length; rank++) {
      if (members[rank] !== before[rank]) this.#member[this.#index.get(members[rank]!)!] = 1;
    }
    this.#progress = new Progress({
      generation,
      members: members.length,
      ordered: now,
      step: committed + 1,
      stepTime: this.#stepTime(now),
      ...checkpoint,
    });
    this.#awaitPace(generation);
    this.#cohortJoined = this.#beats.latest(now, this.#inCohort);
    if (this.#cohortJoined > now) this.#loop.at(this.#cohortJoined, () => this.#form(generation));
  }

  #stepTime(at: Seconds): Seconds {
    const { step } = this.#input.times;
    if (typeof step === "number") return step;
    return typeof step === "function" ? step(this.#ranks.length) : step.step(this.#ranks, at);
  }

  #awaitPace(generation: number): void {
    const { step } = this.#input.times;
    if (typeof step !== "object") return;
    const at = step.next(this.#loop.now);
    if (at === Infinity) return;
    this.#loop.at(at, () => {
      if (this.#progress.input.generation !== generation) return;
      this.#progress.retime(this.#loop.now, this.#stepTime(this.#loop.now));
      this.#awaitPace(generation);
    });
  }

  /** Training begins once the last member has joined and loaded its state. */
  #form(generation: number): void {
    const progress = this.#progress;
    if (progress.input.generation !== generation || progress.began < Infinity) return;
    const { now } = this.#loop;
    // A generation that was halted before all had joined comes to nothing.
    if (this.#record.phase !== "training" || this.#cohortJoined > now) return;
    for (const solo of this.#solo.values()) {
      const member = this.#member[solo.index] === 1;
      if (member && (solo.joined !== generation || !solo.up)) return;
    }
    const { start } = this.#input.times;
    const restart = { at: now, record: this.#record, before: this.#before };
    progress.begin(now + (typeof start === "number" ? start : start(restart)));
    for (const host of this.#broken) {
      if (this.#member[this.#index.get(host)!] === 1) progress.freeze(progress.began);
    }
  }

  #end({ committed }: ControllerRecord, now: Seconds): void {
    const { generation, members, ordered, step } = this.#progress.input;
    const productive = this.#progress.trained(committed);
    // A rollback takes back steps of generations before this one too.
    for (let i = this.#spans.length - 1; i >= 0 && this.#spans[i]!.kept > committed; i--) {
      const time = this.#played[i]!.trained(committed);
      this.#spans[i] = { ...this.#spans[i]!, kept: committed, productive: time };
    }
    this.#played.push(this.#progress);
    const began = Math.min(this.#progress.began, now);
    const stopped = Math.min(this.#progress.frozen, now);
    const done = this.#progress.done(now);
    const { stretches } = this.#progress;
    const saving = this.#progress.blocked(now);
    const time = { generation, members, ordered, began, stopped, ended: now };
    const steps = { step, done, committed, kept: committed };
    this.#spans.push({ ...time, ...steps, productive, saving, stretches });
  }

  #evicted(host: number): void {
    const solo = this.#apart(host);
    const { repair } = this.#input.times;
    if (repair === Infinity) return;
    this.#loop.after(repair, () => {
      this.#broken.delete(host);
      solo.up = true;
      this.#sync();
      this.#controller.admit(host, this.#loop.now);
      this.#decided();
      this.#speak(solo);
      this.#beat(solo);
    });
  }

  /** Plays a host by itself from now on. */
  #apart(host: number): Soloist {
    const known = this.#solo.get(host);
    if (known !== undefined) return known;
    // What the cohort has said up to now, it has said too.
    if (this.#solo.size < this.#hosts.length - 1) this.#sync();
    const index = this.#index.get(host)!;
    const { now } = this.#loop;
    const { generation, phase } = this.#record;
    const member = this.#member[index] === 1;
    const beat = this.#beats.next(index, this.#turned);
    const solo: Soloist = { index, host, up: true, generation, leaving: 0, joined: 0, pending: 0 };
    if (phase === "halting" && beat + this.#input.times.leave > now) {
      solo.generation = generation - 1;
      if (beat <= now) this.#leave(solo, generation, beat + this.#input.times.leave);
    } else if (phase === "training" && member && beat <= now) solo.joined = generation;
    this.#solo.set(host, solo);
    this.#beat(solo);
    // It may have said more than the cohort, which speaks of what all of its hosts have said.
    const last = this.#beats.last(index, now);
    if (last > 0 && solo.generation === generation) this.#report(solo, { as: last });
    return solo;
  }

  #beat(solo: Soloist): void {
    this.#loop.at(this.#beats.next(solo.index, this.#loop.now), () => {
      if (!this.#speaks(solo)) return;
      this.#speak(solo);
      if (this.#isLikeAll(solo)) {
        this.#solo.delete(solo.host);
        this.#sync();
      } else this.#beat(solo);
    });
  }

  /** Whether a host need not be played any more: well, and idle or in training. */
  #isLikeAll({ host, index, pending }: Soloist): boolean {
    if (this.#input.transport === "full" || this.#record.phase !== "training") return false;
    const busy = this.#member[index] === 1 && !(this.#progress.began <= this.#loop.now);
    return !busy && pending === 0 && !this.#broken.has(host) && this.#solo.has(host);
  }

  #speaks(solo: Soloist): boolean {
    return solo.up && this.#solo.get(solo.host) === solo && !this.#record.evicted.has(solo.host);
  }

  #speak(solo: Soloist, said: Said = {}): void {
    this.#obey(solo, this.#report(solo, said));
  }

  #report(solo: Soloist, said: Said): Order {
    const { now } = this.#loop;
    const { fault, reason, as = now } = said;
    const { host, generation, joined } = solo;
    const trains = joined === generation && generation === this.#progress.input.generation;
    const done = trains ? this.#progress.done(as) : 0;
    const saved = trains ? this.#progress.saved(as) : 0;
    const evidence = fault === undefined ? {} : { fault };
    const text = reason === undefined ? {} : { reason };
    const report = { host, generation, done, saved, ...evidence, ...text };
    if (fault !== undefined) this.#sync();
    const order = this.#controller.report(report, now);
    this.#decided();
    return order;
  }

  #obey(solo: Soloist, order: Order): void {
    const { now } = this.#loop;
    if (order.kind === "evict") return;
    if (order.kind === "halt") {
      const { generation } = order;
      if (generation > solo.generation && solo.leaving < generation) {
        this.#leave(solo, generation, now + this.#input.times.leave);
      }
    } else if (solo.joined !== order.generation && solo.leaving <= order.generation) {
      solo.generation = order.generation;
      solo.joined = order.generation;
      this.#form(order.generation);
    }
  }

  #leave(solo: Soloist, generation: number, at: Seconds): void {
    solo.leaving = generation;
    this.#loop.at(at, () => {
      if (!this.#speaks(solo) || solo.generation >= generation) return;
      solo.generation = generation;
      this.#speak(solo);
    });
  }

  /** An incident is to come: its hosts are played from a heartbeat before it. */
  #announce(incident: Incident): void {
    const { times } = this.#input;
    const hosts = incident.hosts.filter((host) => this.#index.has(host));
    const from = Math.max(this.#loop.now, incident.time - times.heartbeat);
    this.#loop.at(from, () => {
      for (const host of hosts) this.#apart(host).pending++;
      if (hosts.length > 0) this.#sync();
    });
    this.#loop.at(incident.time, () => this.#strike(incident, hosts));
  }

  #strike(incident: Incident, hosts: readonly number[]): void {
    const { symptom, detect = 0, cause = symptom } = incident;
    const { now } = this.#loop;
    const struck = hosts.filter((host) => !this.#record.evicted.has(host));
    const inside =
      hosts.length === 0 || struck.some((host) => this.#member[this.#index.get(host)!]);
    const { generation } = this.#record;
    const own = (host: number): Soloist => this.#solo.get(host)!;
    const over = (): void => {
      for (const host of hosts) own(host).pending--;
    };
    const later = (notice: () => void): void => {
      this.#loop.after(detect, () => {
        over();
        notice();
      });
    };
    if (inside && stops.has(symptom)) this.#progress.freeze(now);
    switch (symptom) {
      case "silence":
        for (const host of struck) own(host).up = false;
        over();
        return;
      case "evidence":
        for (const host of struck) this.#broken.add(host);
        later(() => {
          for (const host of struck)
            if (this.#speaks(own(host))) this.#speak(own(host), { fault: "host", reason: cause });
        });
        return;
      case "software":
      case "loss":
        later(() => this.#complain(symptom === "loss" ? "loss" : "software", generation, struck));
        return;
      case "named":
      case "degraded":
        later(() => {
          this.#sync();
          this.#controller.suspect(struck, cause, this.#loop.now);
          this.#decided();
        });
        return;
      case "update":
        over();
        this.#sync();
        this.#controller.update(++this.#updates, now, { urgent: incident.urgent === true });
        this.#decided();
    }
  }

  /** A member reports what has come over its generation, unless that has ended meanwhile. */
  #complain(fault: "software" | "loss", generation: number, hosts: readonly number[]): void {
    const { phase, members } = this.#record;
    if (phase !== "training" || this.#record.generation !== generation) return;
    const host = hosts.find((each) => members.includes(each)) ?? members[0]!;
    const solo = this.#apart(host);
    this.#sync();
    if (solo.generation === generation && solo.joined === generation && this.#speaks(solo)) {
      this.#speak(solo, { fault });
    }
  }

  #summary(): RunSummary {
    if (this.#record.phase !== "stopped") {
      // What is left to happen lies beyond the horizon.
      this.#loop.at(this.#input.horizon, () => this.#sync());
      this.#loop.step();
    }
    const end = this.#loop.now;
    if (this.#record.phase === "training") this.#end(this.#record, end);
    const productive = this.#spans.reduce((sum, each) => sum + each.productive, 0);
    return {
      record: this.#record,
      end,
      productive,
      ettr: end > 0 ? productive / end : 0,
      spans: this.#spans,
    };
  }
}

const stops: ReadonlySet<Incident["symptom"]> = new Set([
  "silence",
  "evidence",
  "software",
  "named",
]);

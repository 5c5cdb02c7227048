/**
 * A run of weeks on virtual time, decided by the same controller as a live one. Hosts that are well
 * are not played: one cohort report stands for all that they would have said, at the times when it
 * matters, and a host is played by itself from just before something befalls it. Cost grows with
 * incidents, not with hosts × time. `transport: "full"` plays every heartbeat of every host instead,
 * with the same decisions at the same times.
 */
import { TriremeError, type Seconds } from "@trireme/core";

import { RecoveryController } from "../recovery/controller.ts";
import type { ControllerRecord } from "../recovery/record.ts";
import { Beats } from "./beats.ts";
import { checkRun, stepTime } from "./check-run.ts";
import { EventLoop } from "./event-loop.ts";
import { Progress } from "./progress.ts";
import { RunIncidents } from "./run-incidents.ts";
import type { RunInput, RunSummary } from "./run-input.ts";
import type { RunStage } from "./run-stage.ts";
import { Soloists } from "./soloists.ts";
import { SpanLog } from "./span-log.ts";

export class RunPlay implements RunStage {
  readonly input: RunInput;
  readonly controller: RecoveryController;
  readonly loop: EventLoop = new EventLoop();
  readonly beats: Beats;
  readonly hosts: readonly number[];
  readonly index: Map<number, number> = new Map();
  readonly #soloists: Soloists = new Soloists(this);
  readonly #incidents: RunIncidents = new RunIncidents(this, this.#soloists);
  readonly #log = new SpanLog();
  readonly #member: Uint8Array;
  #record: ControllerRecord;
  /** Hosts by rank whose marks `#member` holds. */
  #ranks: readonly number[] = [];
  /** Those of the generation before. */
  #before: readonly number[] = [];
  /** When the present phase was decided. */
  #turned: Seconds = 0;
  #progress!: Progress;
  #cohortJoined: Seconds = Infinity;

  constructor(input: RunInput) {
    checkRun(input);
    this.input = input;
    const { options } = input;
    this.hosts = [...options.hosts, ...options.standbys];
    for (const [index, host] of this.hosts.entries()) this.index.set(host, index);
    this.#member = new Uint8Array(this.hosts.length);
    this.beats = new Beats(this.hosts.length, input.times.heartbeat);
    this.controller = new RecoveryController(options, 0);
    this.#record = this.controller.record;
    this.#begin(this.#record, 0);
    if (input.transport === "full") for (const host of this.hosts) this.#soloists.apart(host);
    this.sync();
  }

  get record(): ControllerRecord {
    return this.#record;
  }

  get progress(): Progress {
    return this.#progress;
  }

  get turned(): Seconds {
    return this.#turned;
  }

  isMember(index: number): boolean {
    return this.#member[index] === 1;
  }

  run(): RunSummary {
    const { horizon, incidents, times } = this.input;
    const stream = incidents[Symbol.iterator]();
    let next = stream.next();
    let last = 0;
    for (;;) {
      const due = this.#due;
      const at = Math.min(this.loop.next, due);
      // A host must be played from a heartbeat before what befalls it.
      if (next.done !== true && next.value.time <= Math.min(at, horizon) + times.heartbeat) {
        const incident = next.value;
        if (!(incident.time >= last)) {
          const message = `incident at ${incident.time} s after one at ${last} s: sort them by time`;
          throw new TriremeError("RUN_INCIDENTS", message);
        }
        last = incident.time;
        this.#incidents.announce(incident);
        next = stream.next();
        continue;
      }
      if (this.#record.phase === "stopped" || at > horizon) break;
      if (this.loop.next <= due) this.loop.step();
      else this.#tick(due);
    }
    return this.#summary();
  }

  /** When the controller has something to do; never before now, whatever a clock may round. */
  get #due(): Seconds {
    return Math.max(this.controller.next, this.loop.now);
  }

  #tick(at: Seconds): void {
    this.loop.at(at, () => {
      this.sync();
      this.controller.tick(at);
      this.decided();
    });
    this.loop.step();
  }

  /** Delivers what all the hosts that are not played would have said by now. */
  sync(): void {
    if (this.input.transport === "full") return;
    const { now } = this.loop;
    const { phase, generation, committed } = this.#record;
    const except = this.#soloists.hosts;
    const lasting = except.length < this.hosts.length;
    const report = (reported: number, step: number): void => {
      const body = { generation: reported, done: step, saved: step, except, lasting };
      this.controller.reportCohort(body, now);
    };
    if (!lasting) {
      report(0, 0);
    } else if (phase === "training") {
      // Each member has last spoken at its own time: what all have saved is what the first had.
      const heard = this.beats.oldest(now, this.#inCohort);
      const { every } = this.#progress.input;
      // Where every member is played by itself, the others have no steps to speak of.
      const to = heard < Infinity ? this.#progress.saved(heard) : committed;
      const keep = (this.input.options.keep ?? 10) * every;
      for (let step = Math.max(committed + every, to - keep); step <= to; step += every) {
        report(generation, step);
      }
      report(generation, Math.max(committed, to));
    } else if (phase === "halting") {
      report(generation - (this.#cohortLeft <= now ? 0 : 1), 0);
    }
    this.decided();
  }

  readonly #inCohort = (index: number): boolean =>
    this.isMember(index) && !this.#soloists.has(this.hosts[index]!);

  /** When the last member of the cohort has left. */
  get #cohortLeft(): Seconds {
    return this.beats.latest(this.#turned, this.#inCohort) + this.input.times.leave;
  }

  /** Draws the consequences of a decision, if there was one. */
  decided(): void {
    const last = this.#record;
    const next = this.controller.record;
    if (next === last) return;
    const { now } = this.loop;
    this.#record = next;
    const turned = next.phase !== last.phase || next.generation !== last.generation;
    if (turned || next.evicted !== last.evicted || next.standbys !== last.standbys) {
      this.input.on?.({ at: now, record: next });
    }
    if (next.evicted !== last.evicted) {
      for (const host of next.evicted.keys())
        if (!last.evicted.has(host)) this.#soloists.evicted(host);
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
    this.loop.at(at, () => {
      if (this.#record.phase === "halting" && this.#record.generation === generation) this.sync();
    });
  }

  #begin(record: ControllerRecord, now: Seconds): void {
    const { times } = this.input;
    const { members, generation, committed } = record;
    const { checkpoint } = times;
    this.#turned = now;
    // Most ranks keep their host.
    const before = this.#ranks;
    this.#before = before;
    this.#ranks = members;
    for (let rank = 0; rank < before.length; rank++) {
      if (members[rank] !== before[rank]) this.#member[this.index.get(before[rank]!)!] = 0;
    }
    for (let rank = 0; rank < members.length; rank++) {
      if (members[rank] !== before[rank]) this.#member[this.index.get(members[rank]!)!] = 1;
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
    this.#cohortJoined = this.beats.latest(now, this.#inCohort);
    if (this.#cohortJoined > now) this.loop.at(this.#cohortJoined, () => this.form(generation));
  }

  #stepTime(at: Seconds): Seconds {
    return stepTime(this.input.times.step, this.#ranks, at);
  }

  #awaitPace(generation: number): void {
    const { step } = this.input.times;
    if (typeof step !== "object") return;
    const at = step.next(this.loop.now);
    if (at === Infinity) return;
    if (!(at > this.loop.now)) {
      const found = `times.step.next(${this.loop.now}) = ${at} s`;
      throw new TriremeError(
        "RUN_INPUT",
        `${found}: the next change must be later; Infinity for never`,
      );
    }
    this.loop.at(at, () => {
      if (this.#progress.input.generation !== generation) return;
      this.#progress.retime(this.loop.now, this.#stepTime(this.loop.now));
      this.#awaitPace(generation);
    });
  }

  /** Training begins once the last member has joined and loaded its state. */
  form(generation: number): void {
    const progress = this.#progress;
    if (progress.input.generation !== generation || progress.began < Infinity) return;
    const { now } = this.loop;
    // A generation that was halted before all had joined comes to nothing.
    if (this.#record.phase !== "training" || this.#cohortJoined > now) return;
    if (this.#soloists.awaits(generation)) return;
    const { start } = this.input.times;
    const restart = { at: now, record: this.#record, before: this.#before };
    const loading = typeof start === "number" ? start : start(restart);
    if (!(loading >= 0)) {
      throw new TriremeError(
        "RUN_INPUT",
        `times.start = ${loading} s at ${now} s must be 0 or more`,
      );
    }
    progress.begin(now + loading);
    for (const host of this.#soloists.broken) {
      if (this.isMember(this.index.get(host)!)) progress.freeze(progress.began);
    }
  }

  #end({ committed }: ControllerRecord, now: Seconds): void {
    this.#log.add(this.#progress, committed, now);
  }

  #summary(): RunSummary {
    if (this.#record.phase !== "stopped") {
      // What is left to happen lies beyond the horizon.
      this.loop.at(this.input.horizon, () => this.sync());
      this.loop.step();
    }
    const end = this.loop.now;
    if (this.#record.phase === "training") this.#end(this.#record, end);
    const { spans, productive } = this.#log;
    return {
      record: this.#record,
      end,
      productive,
      ettr: end > 0 ? productive / end : 0,
      spans,
    };
  }
}

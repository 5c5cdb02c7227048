/**
 * Holds a history against the four rules, by what is true of the simulated cluster and not by what
 * the controller believes:
 * 1. at most one generation trains at a time;
 * 2. no committed step is lost or trained twice, and no batch either;
 * 3. every fault ends in training again or in a clear stop, for a reason that holds;
 * 4. no host is evicted without evidence, beyond groups that were named together.
 */
import { TriremeError, type Seconds } from "@trireme/core";

import type { ControllerRecord } from "../recovery/record.ts";
import type { SimulatedAgent } from "./agent.ts";
import type { Collective, Generations, Observer } from "./generations.ts";
import type { HistoryScript } from "./script.ts";
import type { TraceEntry } from "./seat.ts";
import { type Told, mayStop } from "./stop-reasons.ts";

export type RuleName = "one-generation" | "committed-steps" | "liveness" | "evidence";

/** A rule was broken: which, in which history, and all that controllers were told up to then. */
export class RuleBroken extends TriremeError {
  readonly rule: RuleName;
  readonly seed: number;
  readonly trace: readonly TraceEntry[];

  constructor(rule: RuleName, seed: number, message: string, trace: readonly TraceEntry[]) {
    super("RULE_BROKEN", `seed ${seed}: ${rule}: ${message}`);
    this.rule = rule;
    this.seed = seed;
    this.trace = trace;
  }
}

export class Witness implements Observer {
  readonly #script: HistoryScript;
  readonly #agents: readonly SimulatedAgent[];
  readonly #trace: readonly TraceEntry[];
  #generations!: Generations;
  #record: ControllerRecord;
  /** When the record's generation began to halt or train. */
  #turned: Seconds = 0;
  /** Batch of each committed step, by step − 1. */
  readonly #lineage: number[] = [];
  #newest = 0;
  #committedIn = 1;
  #committedAt: Seconds = -1;
  #losses = new Set<number>();
  readonly #hurt = new Set<number>();
  readonly #named = new Set<number>();

  constructor(
    script: HistoryScript,
    agents: readonly SimulatedAgent[],
    first: ControllerRecord,
    trace: readonly TraceEntry[],
  ) {
    this.#script = script;
    this.#agents = agents;
    this.#record = first;
    this.#trace = trace;
  }

  attach(generations: Generations): void {
    this.#generations = generations;
    this.#open(this.#record);
  }

  /** When a step was committed last. */
  get committedAt(): Seconds {
    return this.#committedAt;
  }

  get record(): ControllerRecord {
    return this.#record;
  }

  /** Something truly happened to a host, or it was named in a group. */
  hurt(host: number): void {
    this.#hurt.add(host);
  }

  name(hosts: readonly number[]): void {
    for (const host of hosts) this.#named.add(host);
  }

  lossReported(generation: number): void {
    this.#losses.add(generation);
  }

  unasked(host: number, generation: number): void {
    this.#broken(
      "one-generation",
      `host ${host} joins generation ${generation}, which no record has it train in`,
    );
  }

  formed(collective: Collective): void {
    const { generation, step, skip, version, members } = collective;
    const others = this.#generations.alive().filter((each) => each !== collective);
    if (others.length > 0 || generation < this.#newest) {
      const other = others[0]?.generation ?? this.#newest;
      this.#broken("one-generation", `generation ${generation} forms while ${other} trains`);
    }
    this.#newest = generation;
    for (const host of members) {
      const order = this.#agents[host]!.joined!;
      if (order.step !== step || (order.skip ?? 0) !== skip || (order.version ?? 0) !== version) {
        this.#broken(
          "committed-steps",
          `host ${host} joins generation ${generation} at step ${order.step}, skip ${order.skip ?? 0}, not ${step}, ${skip}`,
        );
      }
    }
  }

  trained(collective: Collective, step: number): void {
    const { generation } = collective;
    if (
      generation < this.#newest ||
      this.#generations.alive().some((each) => each !== collective)
    ) {
      this.#broken("one-generation", `generation ${generation} trains after ${this.#newest} began`);
    }
    if (step <= this.#record.committed) {
      this.#broken(
        "committed-steps",
        `generation ${generation} trains committed step ${step} again`,
      );
    }
  }

  /** A record was stored, by a controller that has been told this much. */
  stored(next: ControllerRecord, now: Seconds, told: Told): void {
    const last = this.#record;
    if (next.generation !== last.generation) this.#turned = now;
    for (const host of next.evicted.keys()) {
      if (!last.evicted.has(host)) this.#evicted(host, now, told);
    }
    this.#rolledBack(last, next);
    this.#committed(last, next, now);
    this.#record = next;
    if (next.phase === "training" && last.phase !== "training") this.#open(next);
    if (next.phase === "stopped" && last.phase !== "stopped") this.#stopped(next, now, told);
  }

  #open({ generation, members, committed, skip, version }: ControllerRecord): void {
    // The batch that the generation trains first follows the last one that is committed.
    const first = committed + 1 + skip;
    const before = this.#lineage.at(-1) ?? 0;
    if (first <= before) this.#broken("committed-steps", `batch ${first} would be trained again`);
    this.#generations.open({ generation, members, step: committed + 1, skip, version });
  }

  #rolledBack(last: ControllerRecord, next: ControllerRecord): void {
    const { committed, skip } = next;
    const back = committed < last.committed;
    if (!back && skip === last.skip) return;
    if (this.#losses.size === 0) {
      this.#broken(
        "committed-steps",
        `committed ${last.committed} → ${committed}, skip ${last.skip} → ${skip} without a loss spike`,
      );
    }
    if (back && next.rollbacks !== last.rollbacks + 1) {
      this.#broken("committed-steps", `steps ${committed + 1}..${last.committed} are lost`);
    }
    if (skip < last.skip)
      this.#broken("committed-steps", `skip goes back from ${last.skip} to ${skip}`);
    this.#lineage.length = Math.min(this.#lineage.length, committed);
  }

  #committed(last: ControllerRecord, next: ControllerRecord, now: Seconds): void {
    if (next.committed <= last.committed) return;
    const { generation, committed } = next;
    const collective = this.#generations.get(generation);
    if (collective === undefined || next.generation !== last.generation) {
      this.#broken(
        "committed-steps",
        `step ${committed} committed in generation ${generation}, which has not trained`,
      );
    }
    if (committed > collective.done || collective.step !== this.#lineageEnd(collective)) {
      this.#broken(
        "committed-steps",
        `steps ${last.committed + 1}..${committed} are committed, but generation ${generation} trained ${collective.step}..${collective.done}`,
      );
    }
    const shards = collective.shards.get(committed)?.size ?? 0;
    if (this.#script.saveEvery > 0 && shards < collective.members.length) {
      this.#broken(
        "committed-steps",
        `step ${committed} is committed with ${shards} of ${collective.members.length} shards saved`,
      );
    }
    for (let step = last.committed + 1; step <= committed; step++) {
      const batch = step + next.skip;
      if (batch <= (this.#lineage.at(-1) ?? 0)) {
        this.#broken("committed-steps", `batch ${batch} is committed twice`);
      }
      this.#lineage.push(batch);
    }
    if (this.#lineage.length !== committed) {
      this.#broken(
        "committed-steps",
        `${this.#lineage.length} steps were trained, ${committed} are committed`,
      );
    }
    this.#committedAt = now;
    this.#committedIn = generation;
    this.#losses = new Set();
  }

  /** The first step that this generation was to train, by what had been committed before it. */
  #lineageEnd(collective: Collective): number {
    return this.#committedIn === collective.generation
      ? collective.step
      : this.#record.committed + 1;
  }

  #evicted(host: number, now: Seconds, told: Told): void {
    const { deadline, leave = 0, stall = 0 } = this.#script.options;
    const heard = told.heard.get(host) ?? told.since;
    // Clocks of restarted controllers are off, but tick alike: what is left is rounding.
    const silent = now - heard >= deadline - 1e-6;
    const entered = told.entered.get(host) ?? 0;
    const waited = now - Math.max(told.since, this.#turned);
    const deaf = entered < this.#record.generation && waited >= Math.min(leave, stall) - 1e-6;
    if (silent || deaf || this.#hurt.has(host) || this.#named.has(host)) return;
    this.#broken("evidence", `host ${host} is evicted ${now - heard} s after its last report`);
  }

  #stopped(next: ControllerRecord, now: Seconds, told: Told): void {
    if (next.reason === undefined || next.stop === undefined) {
      this.#broken("liveness", "the run stopped without a reason");
    }
    const { options } = this.#script;
    const seen = { generations: next.generation - this.#committedIn, losses: this.#losses.size };
    if (!mayStop(next.stop, { record: next, now, told, options, ...seen })) {
      this.#broken("liveness", `the run stopped as "${next.reason}", which is not so`);
    }
  }

  /** A controller asks to be woken now, again and again, and does nothing. */
  stuck(now: Seconds): never {
    this.#broken("liveness", `the controller has something to do at ${now} s, but never does it`);
  }

  /** At the end of a history: training goes on, or the run has stopped. */
  ended(now: Seconds): void {
    if (this.#record.phase === "stopped" || this.recovered) return;
    const { phase, generation, committed } = this.#record;
    this.#broken(
      "liveness",
      `${now - this.#script.quiet} s after the last fault generation ${generation} is ${phase} at step ${committed}`,
    );
  }

  /** Whether a step was committed since the last mishap by members that are all well. */
  get recovered(): boolean {
    const { phase, members } = this.#record;
    if (phase !== "training" || this.#committedAt <= this.#script.quiet) return false;
    return members.every((host) => {
      const { up, broken: bad } = this.#agents[host]!;
      return up && !bad;
    });
  }

  #broken(rule: RuleName, message: string): never {
    throw new RuleBroken(rule, this.#script.seed, message, this.#trace);
  }
}

/**
 * Hosts that are played by themselves, from just before something befalls them until they are like all
 * the others again: their heartbeats, what they say and what they do on an order.
 */
import type { Seconds } from "@trireme/core";

import type { Order, Report } from "../recovery/protocol.ts";
import type { RunStage } from "./run-stage.ts";

/** A host that is played by itself. */
export interface Soloist {
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
export interface Said {
  readonly fault?: Exclude<Report["fault"], undefined>;
  readonly reason?: string;
  readonly as?: Seconds;
}

export class Soloists {
  readonly #stage: RunStage;
  readonly #solo = new Map<number, Soloist>();
  /** Hosts with a fault that lasts. */
  readonly broken: Set<number> = new Set();

  constructor(stage: RunStage) {
    this.#stage = stage;
  }

  get size(): number {
    return this.#solo.size;
  }

  get hosts(): readonly number[] {
    return [...this.#solo.keys()];
  }

  has(host: number): boolean {
    return this.#solo.has(host);
  }

  /** Whether one of the members of a generation has not joined it, or cannot. */
  awaits(generation: number): boolean {
    for (const { index, joined, up } of this.#solo.values())
      if (this.#stage.isMember(index) && (joined !== generation || !up)) return true;
    return false;
  }

  /** Plays a host by itself from now on. */
  apart(host: number): Soloist {
    const known = this.#solo.get(host);
    if (known !== undefined) return known;
    // What the cohort has said up to now, it has said too.
    if (this.#solo.size < this.#stage.hosts.length - 1) this.#stage.sync();
    const index = this.#stage.index.get(host)!;
    const { now } = this.#stage.loop;
    const { generation, phase } = this.#stage.record;
    const member = this.#stage.isMember(index);
    const beat = this.#stage.beats.next(index, this.#stage.turned);
    const solo: Soloist = { index, host, up: true, generation, leaving: 0, joined: 0, pending: 0 };
    if (phase === "halting" && beat + this.#stage.input.times.leave > now) {
      solo.generation = generation - 1;
      if (beat <= now) this.#leave(solo, generation, beat + this.#stage.input.times.leave);
    } else if (phase === "training" && member && beat <= now) solo.joined = generation;
    this.#solo.set(host, solo);
    this.#beat(solo);
    // It may have said more than the cohort, which speaks of what all of its hosts have said.
    const last = this.#stage.beats.last(index, now);
    if (last > 0 && solo.generation === generation) this.#report(solo, { as: last });
    return solo;
  }

  #beat(solo: Soloist): void {
    this.#stage.loop.at(this.#stage.beats.next(solo.index, this.#stage.loop.now), () => {
      if (!this.speaks(solo)) return;
      this.speak(solo);
      if (this.#isLikeAll(solo)) {
        this.#solo.delete(solo.host);
        this.#stage.sync();
      } else this.#beat(solo);
    });
  }

  /** Whether a host need not be played any more: well, and idle or in training. */
  #isLikeAll({ host, index, pending }: Soloist): boolean {
    if (this.#stage.input.transport === "full" || this.#stage.record.phase !== "training")
      return false;
    const busy =
      this.#stage.isMember(index) && !(this.#stage.progress.began <= this.#stage.loop.now);
    return !busy && pending === 0 && !this.broken.has(host) && this.#solo.has(host);
  }

  speaks(solo: Soloist): boolean {
    return (
      solo.up && this.#solo.get(solo.host) === solo && !this.#stage.record.evicted.has(solo.host)
    );
  }

  speak(solo: Soloist, said: Said = {}): void {
    this.#obey(solo, this.#report(solo, said));
  }

  #report(solo: Soloist, said: Said): Order {
    const { now } = this.#stage.loop;
    const { fault, reason, as = now } = said;
    const { host, generation, joined } = solo;
    const trains = joined === generation && generation === this.#stage.progress.input.generation;
    const done = trains ? this.#stage.progress.done(as) : 0;
    const saved = trains ? this.#stage.progress.saved(as) : 0;
    const evidence = fault === undefined ? {} : { fault };
    const text = reason === undefined ? {} : { reason };
    const report = { host, generation, done, saved, ...evidence, ...text };
    if (fault !== undefined) this.#stage.sync();
    const order = this.#stage.controller.report(report, now);
    this.#stage.decided();
    return order;
  }

  #obey(solo: Soloist, order: Order): void {
    const { now } = this.#stage.loop;
    if (order.kind === "evict") return;
    if (order.kind === "halt") {
      const { generation } = order;
      if (generation > solo.generation && solo.leaving < generation) {
        this.#leave(solo, generation, now + this.#stage.input.times.leave);
      }
    } else if (solo.joined !== order.generation && solo.leaving <= order.generation) {
      solo.generation = order.generation;
      solo.joined = order.generation;
      this.#stage.form(order.generation);
    }
  }

  #leave(solo: Soloist, generation: number, at: Seconds): void {
    solo.leaving = generation;
    this.#stage.loop.at(at, () => {
      if (!this.speaks(solo) || solo.generation >= generation) return;
      solo.generation = generation;
      this.speak(solo);
    });
  }

  /** A host was evicted; it is handed back when it has been repaired. */
  evicted(host: number): void {
    const solo = this.apart(host);
    const { repair } = this.#stage.input.times;
    if (repair === Infinity) return;
    this.#stage.loop.after(repair, () => {
      this.broken.delete(host);
      solo.up = true;
      this.#stage.sync();
      this.#stage.controller.admit(host, this.#stage.loop.now);
      this.#stage.decided();
      this.speak(solo);
      this.#beat(solo);
    });
  }
}

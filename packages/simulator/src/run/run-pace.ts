/** The time of a step through a run: by who trains, which of them are slow, and what drifts for all. */
import { type Seconds, TriremeError, createRng, hash32 } from "@trireme/core";
import type { Pace, RunDecision } from "@trireme/fault-tolerance/simulation";
import type { Disturbance } from "./run-faults.ts";
import type { StepTimes } from "./step-times.ts";

/** What makes every step longer or shorter as time passes: weather, neighbours, collectors of garbage. */
export interface Drift {
  /** How often the factor is read. */
  readonly every: Seconds;
  /** What a step's time is multiplied by. */
  readonly factor: (at: Seconds) => number;
}

/** A swing about the mean once a day: Llama 3 saw 1 to 2 % of throughput between night and noon. */
export function dailyDrift(amplitude: number, every: Seconds = 3600): Drift {
  if (!(amplitude >= 0 && amplitude < 1)) {
    throw new TriremeError(
      "RUN",
      `amplitude ${amplitude} of a day's swing: use 0 or more, below 1`,
    );
  }
  return { every, factor: (at) => 1 + amplitude * Math.sin((2 * Math.PI * at) / 86_400) };
}

/** Log-normal variation with mean 1 from one time to the next, the same for the same seed. */
export function jitterDrift(seed: number, deviation: number, every: Seconds = 3600): Drift {
  const factor = (at: Seconds): number => {
    const rng = createRng(hash32(seed, Math.floor(at / every)));
    return Math.exp(deviation * rng.normal() - (deviation * deviation) / 2);
  };
  return { every, factor };
}

/** All drifts at once; the finest decides how often they are read. */
export function drifts(...all: readonly Drift[]): Drift {
  return {
    every: Math.min(...all.map(({ every }) => every)),
    factor: (at) => all.reduce((product, each) => product * each.factor(at), 1),
  };
}

export class RunPace implements Pace {
  readonly #steps: StepTimes;
  readonly #disturbances: readonly Disturbance[];
  readonly #drift: Drift | undefined;
  /** When something begins or ends, ascending. */
  readonly #changes: Float64Array;
  #change = 0;
  #entered = 0;
  /** By host, what it is under and may come to be felt: nothing that ends sooner and is no worse. */
  readonly #under = new Map<number, readonly Disturbance[]>();
  /** When hosts were evicted last: what was slow about them is gone. */
  readonly #evicted = new Map<number, Seconds>();
  #before: RunDecision["record"]["evicted"] = new Map();

  constructor(steps: StepTimes, disturbances: readonly Disturbance[], drift?: Drift) {
    if (drift !== undefined && !(drift.every > 0)) {
      throw new TriremeError("RUN", `a drift read every ${drift.every} s: use a time above 0`);
    }
    this.#steps = steps;
    this.#disturbances = disturbances;
    this.#drift = drift;
    this.#changes = Float64Array.from(
      disturbances.flatMap(({ from, until }) => [from, until]),
    ).sort();
  }

  /** To be told of every decision, in order. */
  decided({ at, record }: RunDecision): void {
    if (record.evicted === this.#before) return;
    for (const host of record.evicted.keys()) {
      if (this.#before.has(host)) continue;
      this.#evicted.set(host, at);
      this.#under.delete(host);
    }
    this.#before = record.evicted;
  }

  /** Times asked for must not go back. */
  step(members: readonly number[], at: Seconds): Seconds {
    const all = this.#disturbances;
    while (this.#entered < all.length && all[this.#entered]!.from <= at) {
      this.#enter(all[this.#entered++]!, at);
    }
    const slow = new Map<number, number>();
    for (const [host, list] of this.#under) {
      const left = list.filter(({ until }) => until > at);
      if (left.length === 0) this.#under.delete(host);
      else this.#under.set(host, left);
      const factor = left.reduce((most, each) => Math.max(most, each.factor), 1);
      if (factor === 1) continue;
      const place = members.indexOf(host);
      if (place < 0) continue;
      if (factor === Infinity) return Infinity;
      slow.set(place, factor);
    }
    const time = this.#steps.time(members.length, slow);
    if (this.#drift === undefined) return time;
    const { every, factor } = this.#drift;
    const drifted = factor(Math.floor(at / every) * every);
    if (drifted > 0 && drifted < Infinity) return time * drifted;
    throw new TriremeError("RUN", `a drift of ${drifted} at ${at} s: use a finite factor above 0`);
  }

  #enter(disturbance: Disturbance, at: Seconds): void {
    const { from, until, hosts, factor } = disturbance;
    for (const host of hosts) {
      if (until <= at || (this.#evicted.get(host) ?? -Infinity) >= from) continue;
      const list = this.#under.get(host) ?? [];
      if (list.some((each) => each.until >= until && each.factor >= factor)) continue;
      const left = list.filter((each) => each.until > until || each.factor > factor);
      this.#under.set(host, [...left, disturbance]);
    }
  }

  next(after: Seconds): Seconds {
    while (this.#change < this.#changes.length && this.#changes[this.#change]! <= after) {
      this.#change++;
    }
    const change = this.#changes[this.#change] ?? Infinity;
    const every = this.#drift?.every;
    return every === undefined ? change : Math.min(change, nextMultiple(every, after));
  }
}

/** The first multiple after a time, by the very comparison that it will meet. */
function nextMultiple(every: Seconds, after: Seconds): Seconds {
  let n = Math.floor(after / every);
  while (n * every <= after) n++;
  return n * every;
}

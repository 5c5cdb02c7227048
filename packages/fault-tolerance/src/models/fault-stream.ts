/**
 * The faults of a cluster in order of time, one by one, as a simulator asks for them: 16,384
 * accelerators over months cost as much as their few hundred faults. Each source draws from a stream
 * of its own, so that adding one leaves the faults of the others where they were.
 */
import { TriremeError, type Rng, type Seconds, createRng } from "@trireme/core";
import type { Cluster } from "@trireme/topology";
import { type BitClass, bitClasses } from "../corruption/bits.ts";
import type { Cause } from "./causes.ts";
import { type Component, type Units, checkUnits, unitsOf } from "./component.ts";
import { drawCause } from "./draw-cause.ts";
import { checkLaw, cumulativeHazard, drawFailure } from "./law.ts";
import { type Lemons, lemonPopulations } from "./lemons.ts";
import { Population } from "./population.ts";
import type { Effect, FaultSource, Persistence } from "./source.ts";

/** What happens, without its ranges. */
export type FaultEffect =
  | { readonly kind: "stop"; readonly cause: Cause }
  | { readonly kind: "flap"; readonly duration: Seconds }
  | { readonly kind: "slow"; readonly factor: number; readonly duration: Seconds }
  | { readonly kind: "corrupt"; readonly bits: BitClass; readonly persistence: Persistence };

export interface Fault {
  readonly time: Seconds;
  /** Name of the source. */
  readonly source: string;
  readonly component: Component;
  /** Number of the unit among those of its component: a device, a NIC, a host, a domain. */
  readonly unit: number;
  /** Hosts it takes with it, ascending; none when it is the job's own. */
  readonly hosts: readonly number[];
  readonly effect: FaultEffect;
}

export interface FaultStreamOptions {
  readonly seed: number;
  /** Hosts that fail more often than the rest; none by default. */
  readonly lemons?: Lemons;
}

/** Units of one source that fail alike: all, or the healthy and the lemons apart. */
interface Strand {
  readonly source: FaultSource;
  readonly units: Units;
  readonly population: Population;
  /** Unit of the component behind number i of the population. */
  readonly unit: (i: number) => number;
  readonly rng: Rng;
}

/** The faults that are still to come; it never ends unless there is no source. */
export class FaultStream {
  readonly #strands: readonly Strand[];

  /**
   * @throws TriremeError "FAULTS" or "LAW" when a source has no units, a bad law or bad weights.
   */
  constructor(cluster: Cluster, sources: readonly FaultSource[], options: FaultStreamOptions) {
    const root = createRng(options.seed);
    const { lemons } = options;
    const marked = lemons && { factor: lemons.factor, hosts: lemons.hosts };
    this.#strands = sources.flatMap((source, i) => {
      const units = unitsOf(cluster, source.component);
      checkSource(source, units);
      const rng = root.fork(i);
      return lemonPopulations(cluster, source, units, marked).map((part, j) => ({
        source,
        units,
        unit: part.unit,
        population: new Population(part.count, part.law, rng.fork(2 * j), source.age),
        rng: rng.fork(2 * j + 1),
      }));
    });
  }

  /** Time of the next fault; Infinity where nothing fails. */
  get next(): Seconds {
    return this.#strands.reduce(
      (least, { population }) => Math.min(least, population.next),
      Infinity,
    );
  }

  /** Takes the next fault. Of two at one time the source named first comes first. */
  take(): Fault {
    const time = this.next;
    const strand = this.#strands.find((each) => each.population.next === time);
    if (strand === undefined) throw new TriremeError("FAULTS", "take() of a stream of no sources");
    const { source, units, population, rng } = strand;
    const unit = strand.unit(population.take());
    return {
      time,
      source: source.name,
      component: source.component,
      unit,
      hosts: units.hosts(unit),
      effect: drawEffect(source.effect, rng),
    };
  }
}

/** All faults up to `until`, in order of time. */
export function faultsUntil(
  cluster: Cluster,
  sources: readonly FaultSource[],
  options: FaultStreamOptions & { readonly until: Seconds },
): Fault[] {
  const stream = new FaultStream(cluster, sources, options);
  const faults: Fault[] = [];
  if (!(options.until < Infinity)) {
    throw new TriremeError("FAULTS", `until = ${options.until} s: a list of faults needs an end`);
  }
  while (stream.next <= options.until) faults.push(stream.take());
  return faults;
}

function drawEffect(effect: Effect, rng: Rng): FaultEffect {
  switch (effect.kind) {
    case "stop":
      return { kind: "stop", cause: drawCause(effect.causes, rng) };
    case "flap":
      return { kind: "flap", duration: drawFailure(effect.duration, rng) };
    case "slow": {
      const [from, to] = effect.factor;
      const factor = from + (to - from) * rng.float();
      return { kind: "slow", factor, duration: drawFailure(effect.duration, rng) };
    }
    case "corrupt":
      return {
        kind: "corrupt",
        bits: drawWeighted(bitClasses, effect.bits, rng),
        persistence: drawWeighted(persistences, effect.persistence, rng),
      };
  }
}

const persistences: readonly Persistence[] = ["transient", "intermittent", "permanent"];

function drawWeighted<K extends string>(
  keys: readonly K[],
  weights: Readonly<Record<K, number>>,
  rng: Rng,
): K {
  let left = rng.float() * keys.reduce((sum, key) => sum + weights[key], 0);
  for (const key of keys) {
    left -= weights[key];
    if (left < 0) return key;
  }
  return keys.findLast((key) => weights[key] > 0)!;
}

function checkSource({ name, law, effect, age = 0 }: FaultSource, units: Units): void {
  checkUnits(units, name);
  checkLaw(law);
  if (!(age >= 0 && cumulativeHazard(law, age) < Infinity)) {
    throw new TriremeError(
      "FAULTS",
      `source ${name}: no unit lives to the age of ${age} s by its law`,
    );
  }
  switch (effect.kind) {
    case "stop":
      checkWeights(
        name,
        effect.causes.map((each) => each.count),
      );
      break;
    case "flap":
      checkLaw(effect.duration);
      break;
    case "slow":
      checkLaw(effect.duration);
      if (!(effect.factor[0] >= 1 && effect.factor[1] >= effect.factor[0])) {
        throw new TriremeError(
          "FAULTS",
          `source ${name}: slower by ${effect.factor.join(" to ")}: use an ascending range from 1 up`,
        );
      }
      break;
    case "corrupt":
      checkWeights(name, Object.values(effect.bits));
      checkWeights(name, Object.values(effect.persistence));
  }
}

function checkWeights(name: string, weights: readonly number[]): void {
  const fine = weights.every((each) => each >= 0) && weights.some((each) => each > 0);
  if (fine) return;
  throw new TriremeError(
    "FAULTS",
    `source ${name}: weights [${weights.join(", ")}] must be 0 or more, and one of them above 0`,
  );
}

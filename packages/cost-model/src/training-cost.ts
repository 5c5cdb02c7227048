/** What a whole training run costs: time, device hours, energy, money, carbon. */
import { type Joules, type Seconds, TriremeError } from "@trireme/core";
import type { Cluster } from "@trireme/topology";
import { type Plan, ranks } from "@trireme/workload";
import { type EnergyOptions, stepEnergy } from "./energy.ts";
import type { Cost } from "./estimate.ts";

/** What a run is priced from. */
export interface TrainingOptions extends EnergyOptions {
  readonly cost: Cost;
  readonly plan: Plan;
  readonly cluster: Cluster;
  /** Tokens that the run trains on. */
  readonly tokens: number;
  /** Share of the time that trains (effective training time ratio); 1 when left out. */
  readonly effective?: number;
  /** Money for one hour of one device, in a currency of yours; left out, nothing is said of money. */
  readonly pricePerDeviceHour?: number;
  /** Kilograms of CO₂ equivalent for a kWh; 0.475, about the world's average (IEA, 2018), when left out. */
  readonly carbonIntensity?: number;
}

/** The cost of a run. */
export interface TrainingCost {
  readonly steps: number;
  /** From start to end, interruptions included. */
  readonly seconds: Seconds;
  readonly deviceHours: number;
  readonly energy: Joules;
  /** Kilograms of CO₂ equivalent. */
  readonly carbon: number;
  /** In the currency of the price; undefined without one. */
  readonly money?: number;
}

/**
 * Prices a run of `tokens` tokens; the last step is a whole one.
 * Throws TriremeError "TRAINING" for numbers that make no sense, with what is allowed.
 */
export function trainingCost(o: TrainingOptions): TrainingCost {
  const { cost, plan, tokens, effective = 1, pricePerDeviceHour, carbonIntensity = 0.475 } = o;
  if (!(tokens > 0 && tokens < Infinity)) fail(`tokens ${tokens} must be above 0`);
  if (!(effective > 0 && effective <= 1)) fail(`effective ${effective} must be in (0, 1]`);
  if (pricePerDeviceHour !== undefined && !(pricePerDeviceHour >= 0)) {
    fail(`pricePerDeviceHour ${pricePerDeviceHour} must be 0 or more`);
  }
  if (!(carbonIntensity >= 0)) fail(`carbonIntensity ${carbonIntensity} must be 0 or more`);
  const steps = Math.ceil(tokens / (plan.globalBatch * plan.sequence));
  const seconds = (steps * cost.step) / effective;
  const deviceHours = (seconds * ranks(plan)) / 3600;
  const { site, energy: each } = stepEnergy(o);
  // While a run is down its devices idle at no less than what they wait with: the site's power is taken for all of it.
  const energy = effective === 1 ? steps * each : site * seconds;
  return {
    steps,
    seconds,
    deviceHours,
    energy,
    carbon: (energy / 3.6e6) * carbonIntensity,
    ...(pricePerDeviceHour === undefined ? {} : { money: deviceHours * pricePerDeviceHour }),
  };
}

function fail(message: string): never {
  throw new TriremeError("TRAINING", message);
}

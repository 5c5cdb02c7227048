/**
 * A step on devices that heat up: what each computes makes its heat, heat its clock, and its clock its
 * speed, which changes what all the others do; until nothing changes. A throttled device is a straggler
 * of every collective that it joins (CharLLM-PPT, MICRO 2025).
 */
import { type Joules, type Seconds, TriremeError, type Watts } from "@trireme/core";
import { ranks } from "@trireme/workload";
import { sumStep } from "../../step/simulate-step.ts";
import type { SimulateOptions } from "../../step/simulated-step.ts";
import { devicesPerHost } from "../elastic-plan.ts";
import { costOf } from "../step-times.ts";
import { type HostCooling, airCooled } from "./cooling.ts";
import { type DevicePower, devicePower } from "./device-power.ts";
import { steadyHeat } from "./steady-heat.ts";

export interface HeatedStepOptions extends Omit<SimulateOptions, "unfold" | "grain"> {
  /** Air-cooled where left out. */
  readonly cooling?: HostCooling;
  /** The cost model's where left out. */
  readonly power?: DevicePower;
  /** Place in its host's air of each rank's device; in order of ranks where left out. See `coolSlots`. */
  readonly slots?: (rank: number) => number;
}

export interface HeatedStep {
  /** With the clocks below, and as it would be with all at 1. */
  readonly step: Seconds;
  readonly cool: Seconds;
  /** Share of the devices that are throttled. */
  readonly throttled: number;
  /** By rank. */
  readonly clock: Float64Array;
  readonly temperature: Float64Array;
  readonly power: Float64Array;
  /** Of all devices, without servers and site. */
  readonly meanPower: Watts;
  readonly energyPerToken: Joules;
  /** Rounds until nothing changed. */
  readonly rounds: number;
}

const mostRounds = 50;
/** Clocks are told apart by so much, so that ranks that are alike stay so. */
const grain = 1000;

/**
 * Plays a step until clocks and times agree within a thousandth. Ranks fill hosts in order, and in a host its air,
 * unless placed.
 * @throws TriremeError "HEAT" where they do not in 50 rounds, or where two ranks have one slot.
 */
export function heatedStep(options: HeatedStepOptions): HeatedStep {
  const { cooling: own, power: given, slots, ...o } = options;
  const devices = devicesPerHost(o.cluster);
  const cooling = own ?? airCooled(devices);
  const placed = rankOfSlot(ranks(o.plan), devices, slots);
  const power = given ?? devicePower({ ...o, cost: costOf(o) });
  const count = ranks(o.plan);
  const clock = new Float64Array(count).fill(1);
  const temperature = new Float64Array(count);
  const watts = new Float64Array(count);
  let cool = 0;
  for (let round = 1; round <= mostRounds; round++) {
    const speed = (rank: number): number => (o.speed?.(rank) ?? 1) * clock[rank]!;
    const totals = sumStep({ ...o, speed });
    if (round === 1) cool = totals.step;
    let change = 0;
    for (let first = 0; first < count; first += devices) {
      // Devices of a host that the plan has no ranks for only wait.
      const here = placed.subarray(first, first + devices);
      const computing = Array.from(here, (rank) =>
        rank < 0 ? 0 : totals.rank(rank).compute / totals.step,
      );
      const heat = steadyHeat(cooling, power, computing);
      for (const [slot, rank] of here.entries()) {
        if (rank < 0) continue;
        // Half way each time: throttled devices compute for longer, and would swing otherwise.
        const wanted = (clock[rank]! + heat.clock[slot]!) / 2;
        const next = Math.round(wanted * grain) / grain;
        change = Math.max(change, Math.abs(heat.clock[slot]! - clock[rank]!));
        clock[rank] = next;
        temperature[rank] = heat.temperature[slot]!;
        watts[rank] = heat.power[slot]!;
      }
    }
    if (change > 1.5 / grain) continue;
    const meanPower = watts.reduce((sum, each) => sum + each, 0);
    return {
      step: totals.step,
      cool,
      throttled: clock.filter((each) => each < 1).length / count,
      clock,
      temperature,
      power: watts,
      meanPower,
      energyPerToken: (meanPower * totals.step) / (o.plan.globalBatch * o.plan.sequence),
      rounds: round,
    };
  }
  throw new TriremeError("HEAT", `clocks still change after ${mostRounds} rounds`);
}

/** By host, then by place in its air: the rank there; -1 where there is none. */
function rankOfSlot(
  count: number,
  devices: number,
  slots: ((rank: number) => number) | undefined,
): Int32Array {
  const placed = new Int32Array(Math.ceil(count / devices) * devices).fill(-1);
  for (let rank = 0; rank < count; rank++) {
    const slot = slots?.(rank) ?? rank % devices;
    const at = rank - (rank % devices) + slot;
    if (!Number.isInteger(slot) || slot < 0 || slot >= devices || placed[at] !== -1) {
      throw new TriremeError(
        "HEAT",
        `rank ${rank} has slot ${slot}: use each of 0..${devices - 1} once in a host`,
      );
    }
    placed[at] = rank;
  }
  return placed;
}

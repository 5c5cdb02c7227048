/**
 * A host's devices through time: what they do changes, heat follows. Each device and its sink is one
 * heat capacity behind one resistance, so that between two changes its temperature approaches where it
 * would stay exponentially, in closed form; one that comes to the limit is held there by its clock. Cost
 * is by changes, not by time.
 */
import { type Joules, type Seconds, TriremeError, type Watts } from "@trireme/core";
import { type HostCooling, airOrder } from "./cooling.ts";
import { type DevicePower, clockAt, dynamicPower } from "./device-power.ts";

/** A time in which every device of a host does the same. */
export interface Activity {
  readonly duration: Seconds;
  /** By device: share of the time that it computes; the rest it waits. */
  readonly computing: readonly number[];
}

export interface DeviceHeat {
  /** °C at the end, and at most. */
  readonly temperature: number;
  readonly peakTemperature: number;
  /** Mean over time; 1 unless throttled. */
  readonly clock: number;
  /** Share of the time that it was throttled. */
  readonly throttled: number;
  readonly energy: Joules;
}

export interface HostHeat {
  readonly duration: Seconds;
  readonly devices: readonly DeviceHeat[];
  readonly meanPower: Watts;
  readonly peakPower: Watts;
  /** Times at which temperatures and clocks are known, and both by time and device. */
  readonly times: readonly Seconds[];
  readonly temperatures: readonly (readonly number[])[];
}

/**
 * Plays activities in order.
 * @param from Temperatures to begin with, °C by device; all at the air's where left out.
 * @throws TriremeError "COOLING" for activities of other devices or times that are not 0 or more.
 */
export function hostHeat(
  cooling: HostCooling,
  power: DevicePower,
  activities: readonly Activity[],
  from?: readonly number[],
): HostHeat {
  const { behind, ambient, preheat, resistance, capacity, limit } = cooling;
  const order = airOrder(cooling);
  const count = behind.length;
  const tau = resistance * capacity;
  const temperature = Float64Array.from({ length: count }, (_, i) => from?.[i] ?? ambient);
  const peak = temperature.slice();
  const clocks = new Float64Array(count);
  const throttled = new Float64Array(count);
  const energy = new Float64Array(count);
  const watts = new Float64Array(count);
  const clock = new Float64Array(count);
  const end = new Float64Array(count);
  const times = [0];
  const temperatures = [[...temperature]];
  let [now, peakPower] = [0, 0];
  for (const { duration, computing } of activities) {
    if (!(duration >= 0 && duration < Infinity) || computing.length !== count) {
      throw new TriremeError(
        "COOLING",
        `an activity of ${duration} s of ${computing.length} devices: give a time of 0 or more for ${count}`,
      );
    }
    let left = duration;
    while (left > 0) {
      let step = left;
      let total = 0;
      for (const i of order) {
        const air = ambient + (behind[i]! < 0 ? 0 : preheat * watts[behind[i]!]!);
        const dynamic = dynamicPower(power, computing[i]!);
        const hold = clockAt(dynamic, power.idle, (limit - air) / resistance);
        // Held at the limit: what a rounded temperature is short of it does not count.
        const held = hold < 1 && temperature[i]! >= limit - 1e-9;
        const kept = held ? hold : 1;
        const own = power.idle + dynamic * kept ** 3;
        const goal = air + resistance * own;
        clock[i] = kept;
        watts[i] = own;
        end[i] = goal;
        total += own;
        if (!held && goal > limit && temperature[i]! < limit) {
          step = Math.min(step, tau * Math.log((goal - temperature[i]!) / (goal - limit)));
        }
      }
      peakPower = Math.max(peakPower, total);
      const decay = Math.exp(-step / tau);
      for (let i = 0; i < count; i++) {
        temperature[i] = end[i]! + (temperature[i]! - end[i]!) * decay;
        if (Math.abs(temperature[i]! - limit) < 1e-9) temperature[i] = limit;
        peak[i] = Math.max(peak[i]!, temperature[i]!);
        clocks[i]! += clock[i]! * step;
        if (clock[i]! < 1) throttled[i]! += step;
        energy[i]! += watts[i]! * step;
      }
      now += step;
      left -= step;
      times.push(now);
      temperatures.push([...temperature]);
      if (left < 1e-12 * duration) break;
    }
  }
  const share = (part: number): number => (now > 0 ? part / now : 0);
  return {
    duration: now,
    devices: behind.map((_, i) => ({
      temperature: temperature[i]!,
      peakTemperature: peak[i]!,
      clock: now > 0 ? clocks[i]! / now : 1,
      throttled: share(throttled[i]!),
      energy: energy[i]!,
    })),
    meanPower: share(energy.reduce((sum, each) => sum + each, 0)),
    peakPower,
    times,
    temperatures,
  };
}

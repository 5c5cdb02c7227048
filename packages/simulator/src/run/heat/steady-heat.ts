/** Temperatures and clocks of a host's devices that have done the same for long. */
import { TriremeError, type Watts } from "@trireme/core";
import { type HostCooling, airOrder } from "./cooling.ts";
import { type DevicePower, clockAt, dynamicPower } from "./device-power.ts";

export interface SteadyHeat {
  /** By device, °C. */
  readonly temperature: readonly number[];
  /** By device: 1 unless it is throttled. */
  readonly clock: readonly number[];
  readonly power: readonly Watts[];
}

/**
 * In the order of the air: each device gets the air that the one before it has warmed, runs at clock 1
 * if it stays below the limit so, and else at the clock that holds it there.
 * @param computing By device: share of the time that it computes; the rest it waits.
 */
export function steadyHeat(
  cooling: HostCooling,
  power: DevicePower,
  computing: readonly number[],
): SteadyHeat {
  const { ambient, behind, preheat, resistance, limit } = cooling;
  if (computing.length !== behind.length) {
    throw new TriremeError(
      "COOLING",
      `${computing.length} devices compute, but the host has ${behind.length}`,
    );
  }
  const watts: number[] = Array.from({ length: behind.length }, () => 0);
  const temperature = [...watts];
  const clock = [...watts];
  for (const i of airOrder(cooling)) {
    const before = behind[i]!;
    const air = ambient + (before < 0 ? 0 : preheat * watts[before]!);
    const dynamic = dynamicPower(power, computing[i]!);
    const kept = clockAt(dynamic, power.idle, (limit - air) / resistance);
    const own = power.idle + dynamic * kept ** 3;
    clock[i] = kept;
    watts[i] = own;
    temperature[i] = air + resistance * own;
  }
  return { temperature, clock, power: watts };
}

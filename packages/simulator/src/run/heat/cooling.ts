/**
 * How a host is cooled, and where its devices sit in the air: what comes out of the front ones goes into
 * those behind (CharLLM-PPT, MICRO 2025: rear devices of air-cooled HGX hosts are up to 27 % hotter).
 */
import { TriremeError } from "@trireme/core";

export interface HostCooling {
  /** Of the air that enters, °C. */
  readonly ambient: number;
  /** By device of the host: which device sits before it in the air; -1 for those in front. */
  readonly behind: readonly number[];
  /** Kelvin that each watt of the device before adds to a device's air. */
  readonly preheat: number;
  /** Kelvin between device and air for each watt. */
  readonly resistance: number;
  /** Joules that warm a device and its sink by a kelvin. */
  readonly capacity: number;
  /** °C above which the clock is lowered. */
  readonly limit: number;
}

/**
 * An air-cooled host: devices in two rows, the rear row behind the front one; one device, one row.
 * 0.06 K/W lets 700 W run 42 K above their air. A rear device at the same power is to be 27 % hotter than
 * a front one of 72 °C, 19.4 K: 0.0278 K/W, which is 22 l/s of air a column. 500 J/K is a kilogram of copper
 * and more: a time constant of 30 s. 87 °C is where H100s slow down.
 */
export function airCooled(devices: number, options: Partial<HostCooling> = {}): HostCooling {
  if (!Number.isSafeInteger(devices) || devices < 1) {
    throw new TriremeError("COOLING", `${devices} devices in a host: use a whole number from 1`);
  }
  const front = Math.ceil(devices / 2);
  return {
    ambient: 30,
    behind: Array.from({ length: devices }, (_, i) => (i < front ? -1 : i - front)),
    preheat: 0.0278,
    resistance: 0.06,
    capacity: 500,
    limit: 87,
    ...options,
  };
}

/** Every device in air of its own: liquid, or one row. */
export function liquidCooled(devices: number, options: Partial<HostCooling> = {}): HostCooling {
  const behind = Array.from({ length: devices }, () => -1);
  return airCooled(devices, { resistance: 0.04, preheat: 0, behind, ...options });
}

/** Devices in order of the air: each after the one before it. @throws TriremeError "COOLING". */
export function airOrder(cooling: HostCooling): readonly number[] {
  const { behind, preheat, resistance, capacity, limit, ambient } = cooling;
  for (const [name, value] of Object.entries({ resistance, capacity })) {
    if (!(value > 0 && value < Infinity)) {
      throw new TriremeError("COOLING", `${name} = ${value} must be above 0, and finite`);
    }
  }
  if (!(preheat >= 0)) throw new TriremeError("COOLING", `preheat = ${preheat} K/W: use 0 or more`);
  if (!(limit > ambient)) {
    throw new TriremeError(
      "COOLING",
      `air of ${ambient} °C is no cooler than the limit, ${limit} °C`,
    );
  }
  const order: number[] = [];
  const placed = new Set([-1]);
  while (order.length < behind.length) {
    const next = behind.findIndex((before, i) => !placed.has(i) && placed.has(before));
    if (next < 0) {
      throw new TriremeError(
        "COOLING",
        `behind [${behind.join(", ")}]: each device is behind another of 0..${behind.length - 1}, or -1, and none behind itself`,
      );
    }
    placed.add(next);
    order.push(next);
  }
  return order;
}

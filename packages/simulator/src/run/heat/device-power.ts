/**
 * Power of a device by what it does and its clock. Dynamic power goes with the cube of the clock, as in
 * the cost model, whose own figures for computing and for waiting in a collective these are; a clock
 * of 1 is the one that a device keeps under its power limit, which is what steps are priced at.
 */
import type { Watts } from "@trireme/core";
import { type Cost, stepEnergy } from "@trireme/cost-model";
import { type Cluster, hostOf } from "@trireme/topology";
import type { Plan } from "@trireme/workload";

export interface DevicePower {
  readonly idle: Watts;
  /** While computing, and while waiting in a collective, at a clock of 1. */
  readonly busy: Watts;
  readonly waiting: Watts;
}

/** Lowest clock that a device is throttled to. */
const lowestClock = 0.2;

/** Power of the devices of a plan, from the cost model. */
export function devicePower(o: {
  readonly cost: Cost;
  readonly plan: Plan;
  readonly cluster: Cluster;
}): DevicePower {
  const { busy, waiting } = stepEnergy(o);
  return { idle: hostOf(o.cluster, 0).accelerator.idlePower, busy, waiting };
}

/** What a device draws above idle at a clock of 1, computing for a share of the time and waiting for the rest. */
export function dynamicPower({ idle, busy, waiting }: DevicePower, computing: number): Watts {
  return (busy - idle) * computing + (waiting - idle) * (1 - computing);
}

/** The clock at which a device with so much dynamic power draws `power` in all: at most 1. */
export function clockAt(dynamic: Watts, idle: Watts, power: Watts): number {
  if (dynamic <= 0 || power >= idle + dynamic) return 1;
  return Math.max(lowestClock, Math.cbrt(Math.max(0, power - idle) / dynamic));
}

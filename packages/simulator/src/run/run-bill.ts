/** What a run costs: device hours, energy, carbon, money. */
import { type Joules, type Seconds, TriremeError, type Watts } from "@trireme/core";
import { type EnergyOptions, stepEnergy } from "@trireme/cost-model";
import { type Cluster, hostOf } from "@trireme/topology";
import { type Model, type Plan, ranks } from "@trireme/workload";
import { costOf } from "./step-times.ts";

export interface BillOptions {
  /** What the building adds to the devices. */
  readonly energy?: EnergyOptions;
  /** Money for one hour of one device, standbys' too, in a currency of yours. */
  readonly pricePerDeviceHour?: number;
  /** Kilograms of CO₂ equivalent for a kWh; 0.475, about the world's average (IEA, 2018), by default. */
  readonly carbonIntensity?: number;
}

/** Power of a device with its share of server and site. */
export interface RunPower {
  readonly training: Watts;
  /** Polling in a collective that does not come to its end. */
  readonly waiting: Watts;
  readonly idle: Watts;
}

export interface RunBill {
  readonly deviceHours: number;
  readonly energy: Joules;
  /** Of tokens whose steps were kept; Infinity where none were. */
  readonly energyPerToken: Joules;
  /** Kilograms of CO₂ equivalent. */
  readonly carbon: number;
  /** Undefined without a price. */
  readonly money?: number;
}

/** Device-seconds of a run by what the devices did. */
export interface DeviceTime {
  readonly training: Seconds;
  readonly waiting: Seconds;
  readonly idle: Seconds;
}

/** Power of devices as the cost model has it. */
export function runPower(
  o: { readonly model: Model; readonly plan: Plan; readonly cluster: Cluster } & BillOptions,
): RunPower {
  const { model, plan, cluster, energy = {} } = o;
  const cost = costOf({ model, plan, cluster });
  const { device, waiting, site } = stepEnergy({ cost, plan, cluster, ...energy });
  const overhead = site / (device * ranks(plan));
  const { idlePower } = hostOf(cluster, 0).accelerator;
  return { training: device * overhead, waiting: waiting * overhead, idle: idlePower * overhead };
}

/** @throws TriremeError "RUN" for a price or an intensity below 0. */
export function runBill(
  time: DeviceTime,
  power: RunPower,
  tokens: number,
  { pricePerDeviceHour, carbonIntensity = 0.475 }: BillOptions,
): RunBill {
  for (const [name, value] of Object.entries({ pricePerDeviceHour, carbonIntensity })) {
    if (value !== undefined && !(value >= 0)) {
      throw new TriremeError("RUN", `${name} = ${value} must be 0 or more`);
    }
  }
  const { training, waiting, idle } = time;
  const energy = training * power.training + waiting * power.waiting + idle * power.idle;
  const deviceHours = (training + waiting + idle) / 3600;
  return {
    deviceHours,
    energy,
    energyPerToken: energy / tokens,
    carbon: (energy / 3.6e6) * carbonIntensity,
    ...(pricePerDeviceHour === undefined ? {} : { money: deviceHours * pricePerDeviceHour }),
  };
}

/** What weather does to a run: air of another temperature, other clocks, another step. */
import type { Seconds } from "@trireme/core";
import { devicesPerHost } from "../elastic-plan.ts";
import type { Drift } from "../run-pace.ts";
import { airCooled } from "./cooling.ts";
import { type HeatedStepOptions, heatedStep } from "./heated-step.ts";

export interface HeatDriftOptions extends HeatedStepOptions {
  /** Of the air that enters hosts, °C. */
  readonly ambient: (at: Seconds) => number;
  /** How often it is read; an hour by default. */
  readonly every?: Seconds;
}

/** The drift of a run's steps with the air; each half degree is played once. */
export function heatDrift({ ambient, every = 3600, ...o }: HeatDriftOptions): Drift {
  const cooling = o.cooling ?? airCooled(devicesPerHost(o.cluster));
  const known = new Map<number, number>();
  const factor = (at: Seconds): number => {
    const air = Math.round(2 * ambient(at)) / 2;
    let value = known.get(air);
    if (value === undefined) {
      const { step, cool } = heatedStep({ ...o, cooling: { ...cooling, ambient: air } });
      known.set(air, (value = step / cool));
    }
    return value;
  };
  return { every, factor };
}

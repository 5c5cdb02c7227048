/**
 * Power and energy of a step. A device that computes draws what its matrix products would take at the full clock,
 * or its limit, where that is less. One that waits in a collective keeps polling: between 128 and 2,048 H100s
 * the throughput of each falls by 37 % and its power by 6 % only (arXiv 2411.13055, §5), which makes
 * waiting 0.8 of the way from idle to busy. The rest of a server takes half as much as its devices
 * (Acme, arXiv 2403.07648 §3: GPUs are two thirds of a server's power).
 */
import { type Joules, TriremeError, type Watts } from "@trireme/core";
import { type Cluster, hostOf } from "@trireme/topology";
import { type Plan, ranks } from "@trireme/workload";
import type { Cost } from "./estimate.ts";
import { powerDemand } from "./power-limit.ts";

/** What the building adds to the devices; each may be replaced by what is known of a site. */
export interface EnergyOptions {
  /** Power of a whole server over that of its devices; 1.5 when left out, 1 of a CPU host. */
  readonly server?: number;
  /** Power of the site over that of its servers (PUE); 1.25 when left out. */
  readonly site?: number;
}

/** Mean power and energy of one step. */
export interface StepEnergy {
  /** Of one device, over the step. */
  readonly device: Watts;
  /** Of one device while it computes. */
  readonly busy: Watts;
  /** Of one device while it waits. */
  readonly waiting: Watts;
  /** Of all devices of the plan with their servers and the site. */
  readonly site: Watts;
  /** Of the step, at the site. */
  readonly energy: Joules;
  /** The same for each token. */
  readonly energyPerToken: Joules;
}

/** Share of the way from idle to busy power that polling in a collective takes. */
const polling = 0.8;

/**
 * Power and energy of a step that was estimated.
 * Throws TriremeError "ENERGY" for factors below 1.
 */
export function stepEnergy(
  o: { readonly cost: Cost; readonly plan: Plan; readonly cluster: Cluster } & EnergyOptions,
): StepEnergy {
  const { cost, plan, cluster } = o;
  const a = hostOf(cluster, 0).accelerator;
  const server = o.server ?? (a.kind === "cpu" ? 1 : 1.5);
  const site = o.site ?? 1.25;
  for (const [name, value] of Object.entries({ server, site })) {
    if (!(value >= 1 && value < Infinity)) {
      throw new TriremeError(
        "ENERGY",
        `${name} ${value} is a share of less than all; use 1 or more`,
      );
    }
  }
  const demand = powerDemand(a);
  const busy = demand === 0 ? a.tdp : Math.min(a.tdp, Math.max(demand, a.idlePower));
  const waiting = a.idlePower + polling * (busy - a.idlePower);
  const computing = Math.min(1, (cost.breakdown.compute + cost.breakdown.optimizer) / cost.step);
  const device = computing * busy + (1 - computing) * waiting;
  const all = device * ranks(plan) * server * site;
  const energy = all * cost.step;
  return {
    device,
    busy,
    waiting,
    site: all,
    energy,
    energyPerToken: energy / (cost.tokensPerSecond * cost.step),
  };
}

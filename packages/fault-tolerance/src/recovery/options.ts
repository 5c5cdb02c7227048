/** How a controller is to recover: who trains, how long it waits for what, when it gives up. */
import { TriremeError, days, type Seconds } from "@trireme/core";

import { type SpikePolicy, defaultSpikePolicy } from "./spike.ts";

export interface ControllerOptions {
  readonly hosts: readonly number[];
  readonly standbys: readonly number[];
  /** Silence after which a member is evicted. */
  readonly deadline: Seconds;
  /** Fewest hosts that can train (data parallelism shrinks to here); 1 by default. */
  readonly minimum?: number;
  /** Software faults in a row without a committed step before it is called a crash loop; 3. */
  readonly restarts?: number;
  /** Hosts of one data-parallel replica: members are a multiple of it; 1 by default. */
  readonly unit?: number;
  /** With fewer hosts than at first, how long to wait for standbys before training on; 0. */
  readonly patience?: Seconds;
  /** How long a member may take to leave a generation (self-checks included); 10 deadlines. */
  readonly leave?: Seconds;
  /**
   * How long no member may finish a step before it is called a hang: longer than loading and the
   * longest step together. Infinity by default: agents' own watchdogs report.
   */
  readonly stall?: Seconds;
  /**
   * Silence after which an agent leaves its generation by itself, in the controller's time (the
   * agent's clock may run slow: let it leave earlier). With it, standbys succeed a generation of
   * which no host is left once it must be over; without it such a run stops.
   */
  readonly lease?: Seconds;
  /** How long to hold still when no host at all is heard any more; 3 deadlines. */
  readonly blackout?: Seconds;
  /**
   * How long to train on fewer hosts while standbys wait, before stopping to hire them. Infinity by
   * default: they are hired at the next interruption.
   */
  readonly regrow?: Seconds;
  /** Saves that the store keeps, newest first to count; what is older cannot be restored. 10. */
  readonly keep?: number;
  /** Longest wait of an update that is not urgent for an interruption to merge into; 24 h. */
  readonly updateWindow?: Seconds;
  readonly spike?: Partial<SpikePolicy>;
}

export type ResolvedOptions = Required<Omit<ControllerOptions, "spike" | "lease">> & {
  readonly spike: SpikePolicy;
  readonly lease: Seconds | undefined;
};

/** @throws TriremeError "CONTROLLER" naming the option, its value and what is allowed. */
export function resolveOptions(options: ControllerOptions): ResolvedOptions {
  const { hosts, standbys, deadline } = options;
  const resolved: ResolvedOptions = {
    minimum: 1,
    restarts: 3,
    unit: 1,
    patience: 0,
    leave: 10 * deadline,
    stall: Infinity,
    blackout: 3 * deadline,
    regrow: Infinity,
    keep: 10,
    updateWindow: days(1),
    ...options,
    lease: options.lease,
    spike: { ...defaultSpikePolicy, ...options.spike },
  };
  const { minimum, unit } = resolved;
  if (hosts.length < Math.max(1, minimum)) {
    refuse(`${hosts.length} hosts, but at least ${Math.max(1, minimum)} must train`);
  }
  if (new Set([...hosts, ...standbys]).size !== hosts.length + standbys.length) {
    refuse(`hosts and standbys [${[...hosts, ...standbys].join(", ")}] name a host twice`);
  }
  for (const name of ["deadline", "leave", "stall", "blackout"] as const) {
    if (!(resolved[name] > 0)) refuse(`${name} = ${resolved[name]} s must be above 0`);
  }
  for (const name of ["patience", "regrow", "updateWindow"] as const) {
    if (!(resolved[name] >= 0)) refuse(`${name} = ${resolved[name]} s must be 0 or more`);
  }
  if (resolved.lease !== undefined && !(resolved.lease > 0)) {
    refuse(`lease = ${resolved.lease} s must be above 0; leave it out to stop instead`);
  }
  for (const [name, least] of [
    ["minimum", 0],
    ["restarts", 0],
    ["unit", 1],
    ["keep", 1],
  ] as const) {
    checkWhole(name, resolved[name], least);
  }
  for (const [name, value] of Object.entries(resolved.spike)) {
    checkWhole(`spike.${name}`, value);
  }
  if (hosts.length % unit !== 0) {
    refuse(
      `${hosts.length} hosts are no whole number of replicas of ${unit}; the nearest is ${Math.max(1, Math.round(hosts.length / unit)) * unit}`,
    );
  }
  return resolved;
}

/** @throws TriremeError "CONTROLLER" for what is no whole number from `least` up. */
export function checkWhole(name: string, value: number, least = 0): void {
  if (Number.isSafeInteger(value) && value >= least) return;
  refuse(`${name} = ${value} must be a whole number, ${least} or more`);
}

function refuse(message: string): never {
  throw new TriremeError("CONTROLLER", message);
}

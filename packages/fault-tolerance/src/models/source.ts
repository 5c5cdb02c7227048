/**
 * What can go wrong, as data: a source is one component of the cluster, the law by which each of its
 * units fails, and what a failure does.
 */
import type { Seconds } from "@trireme/core";
import type { BitClass } from "../corruption/bits.ts";
import type { Cause } from "./causes.ts";
import type { Component } from "./component.ts";
import type { FailureLaw } from "./law.ts";

/** How long a device goes on corrupting: once, now and then, or at every use until it is replaced. */
export type Persistence = "transient" | "intermittent" | "permanent";

/** What a failure of a unit does, with the ranges that each fault is drawn from. */
export type Effect =
  /** The unit's hosts, or the job, stop until somebody recovers them. */
  | { readonly kind: "stop"; readonly causes: readonly Cause[] }
  /** The unit's links are down for a time, and come back by themselves. */
  | { readonly kind: "flap"; readonly duration: FailureLaw }
  /** The unit is slower by a factor drawn evenly from the range (2 is half as fast), for a time. */
  | {
      readonly kind: "slow";
      readonly factor: readonly [number, number];
      readonly duration: FailureLaw;
    }
  /** The unit computes wrong values, and nothing says so. */
  | {
      readonly kind: "corrupt";
      readonly bits: Readonly<Record<BitClass, number>>;
      readonly persistence: Readonly<Record<Persistence, number>>;
    };

export interface FaultSource {
  readonly name: string;
  readonly component: Component;
  /** Time between failures of one unit, renewed at each. */
  readonly law: FailureLaw;
  readonly effect: Effect;
  /** Age of the units at time 0, of which they have not failed; 0 by default: all are new. */
  readonly age?: Seconds;
}

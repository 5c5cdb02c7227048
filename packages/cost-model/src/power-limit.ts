/**
 * What a power limit leaves of the clock. Dynamic power goes with operations a second and the square of the
 * voltage, which follows the clock; `demand` is known of one part of each architecture, and other parts of it have more
 * or fewer multiprocessors at another clock: a GB200's are 3 % more than a B200's and its datasheet's clock is 8 %
 * higher, so that at full clock it would take 30 % more.
 */
import type { Watts } from "@trireme/core";
import { type Accelerator, accelerator } from "@trireme/topology";
import { characteristics } from "./characteristics.ts";

/** The part of an architecture that its `demand` was set on. */
const references: Readonly<Record<string, string>> = {
  volta: "v100-32",
  ampere: "a100-80",
  hopper: "h100",
  blackwell: "b200",
  "blackwell-ultra": "gb300",
  cdna3: "mi300x",
  cdna4: "mi355x",
};

/**
 * Power that matrix products on random data would take at a part's full clock, were there no limit; 0 where unknown.
 */
export function powerDemand(a: Accelerator): Watts {
  const { demand } = characteristics(a);
  const name = references[a.architecture];
  if (demand === 0 || name === undefined) return demand;
  const known = accelerator(name);
  const arithmetic = peakOf(a) / peakOf(known);
  const each = (arithmetic * known.multiprocessors) / a.multiprocessors;
  // Multiprocessors a quarter faster or slower are of another make, not of another clock.
  const clock = each > 0.8 && each < 1.25 ? each : 1;
  return a.idlePower + (demand - known.idlePower) * arithmetic * clock ** 2;
}

function peakOf(a: Accelerator): number {
  return a.peak.bf16 ?? a.peak.fp16 ?? 0;
}

/**
 * Clock that a device holds through a training step, as a fraction of the one that its characteristics were measured
 * at: the full clock, or that of the architecture's reference under its own limit where products alone are limited.
 */
export function sustainedClock(a: Accelerator): number {
  const name = references[a.architecture];
  const limited = characteristics(a).throttled === true && name !== undefined;
  return heldClock(a) / (limited ? heldClock(accelerator(name)) : 1);
}

/** The same of a kernel alone, which is over before the limit is met where products alone are not limited. */
export function aloneClock(a: Accelerator): number {
  return characteristics(a).throttled === true ? sustainedClock(a) : 1;
}

/** Fraction of the full clock: where idle power and the rest of the demand times c³ meet the limit. */
function heldClock(a: Accelerator): number {
  const demand = powerDemand(a);
  return demand <= a.tdp ? 1 : Math.cbrt((a.tdp - a.idlePower) / (demand - a.idlePower));
}

/** Sources of faults that stop nothing by themselves: links that flap, hosts that slow, wrong values. */
import { type Seconds, days } from "@trireme/core";
import type { FaultSource } from "./source.ts";

/**
 * Links that go down for some seconds and come back: NCCL rides over it when its timeout is longer
 * (MegaScale, NSDI'24, section 6.3).
 * @param mean Time between flaps of one NIC's link.
 * @param down Mean time down, exponential; 5 s by default.
 */
export function flapSource(mean: Seconds, down: Seconds = 5): FaultSource {
  return {
    name: "link flap",
    component: "nic",
    law: { kind: "exponential", mean },
    effect: { kind: "flap", duration: { kind: "exponential", mean: down } },
  };
}

/**
 * Hosts that compute slowly for a while. With a mean of 199 times the duration half a percent of
 * the hosts is slow at any time, by a tenth: what MegaScale's heat map shows.
 * @param duration Mean time it lasts, exponential; a day by default.
 */
export function stragglerSource(mean: Seconds, duration: Seconds = days(1)): FaultSource {
  return {
    name: "straggler",
    component: "host",
    law: { kind: "exponential", mean },
    effect: {
      kind: "slow",
      factor: [1.05, 1.15],
      duration: { kind: "exponential", mean: duration },
    },
  };
}

/**
 * Silent corruption by bit class: single flips strike each bit of float32 alike, so the class weights
 * are its widths; stuck devices are a quarter, after the share of defects that repeat.
 */
export function corruptionSource(mean: Seconds): FaultSource {
  return {
    name: "silent data corruption",
    component: "accelerator",
    law: { kind: "exponential", mean },
    effect: {
      kind: "corrupt",
      bits: { sign: 1, exponent: 8, "high-mantissa": 12, "low-mantissa": 11 },
      persistence: { transient: 2, intermittent: 1, permanent: 1 },
    },
  };
}

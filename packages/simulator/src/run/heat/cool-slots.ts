/**
 * Thermal-aware placement: in each host the ranks that compute the most sit in front, where the air is cool,
 * and those of light pipeline stages behind them (CharLLM-PPT, MICRO 2025). Ranks keep their hosts, so that
 * nothing changes on the network, and inside a host all devices are alike far.
 */
import { ranks } from "@trireme/workload";
import { sumStep } from "../../step/simulate-step.ts";
import { devicesPerHost } from "../elastic-plan.ts";
import { airCooled } from "./cooling.ts";
import type { HeatedStepOptions } from "./heated-step.ts";

/** Place in its host's air for each rank, by what it computes in a step on cool devices; for `heatedStep`. */
export function coolSlots(options: HeatedStepOptions): (rank: number) => number {
  const { cooling: own, power: _power, slots: _slots, ...o } = options;
  const devices = devicesPerHost(o.cluster);
  const { behind } = own ?? airCooled(devices);
  /** Devices before each in the air. */
  const depth = (slot: number): number => (behind[slot]! < 0 ? 0 : 1 + depth(behind[slot]!));
  const coolest = behind.map((_, slot) => slot).sort((a, b) => depth(a) - depth(b) || a - b);
  const totals = sumStep(o);
  const count = ranks(o.plan);
  const placed = new Int32Array(count);
  for (let first = 0; first < count; first += devices) {
    const here = Array.from({ length: Math.min(devices, count - first) }, (_, i) => first + i);
    const work = new Map(here.map((rank) => [rank, totals.rank(rank).compute]));
    here.sort((a, b) => work.get(b)! - work.get(a)! || a - b);
    here.forEach((rank, i) => (placed[rank] = coolest[i]!));
  }
  return (rank) => placed[rank]!;
}

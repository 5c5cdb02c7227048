/** A row of the catalogue of accelerators, in the units that datasheets print. */
import { GBps, GiB, MiB, TFLOPS } from "@trireme/core";
import type { Accelerator, Precision } from "../accelerator.ts";

/** Figures as datasheets print them: GiB, GB/s, MiB, counts, GB/s, W, W. */
export interface Figures {
  readonly memory: number;
  readonly bandwidth: number;
  readonly l2: number;
  /** Multiprocessors. */
  readonly units: number;
  readonly scaleUp: number;
  readonly tdp: number;
  readonly idle: number;
}

/** A row; peaks in TFLOP/s. */
export function acceleratorRow(
  name: string,
  architecture: string,
  peak: Partial<Record<Precision, number>>,
  figures: Figures,
  source: string,
  kind: Accelerator["kind"] = "gpu",
): Accelerator {
  return {
    name,
    kind,
    architecture,
    peak: Object.fromEntries(Object.entries(peak).map(([p, rate]) => [p, TFLOPS(rate)])),
    memory: GiB(figures.memory),
    memoryBandwidth: GBps(figures.bandwidth),
    l2: MiB(figures.l2),
    multiprocessors: figures.units,
    scaleUp: GBps(figures.scaleUp),
    tdp: figures.tdp,
    idlePower: figures.idle,
    source,
  };
}

/** Idle power read from boards: how many, and between which watts. */
export const idle = (boards: number, low: number, high: number, tool = "nvidia-smi"): string =>
  `idle power: median of ${boards} boards in public ${tool} output, ${low} to ${high} W`;
export const idleNote: string = "idle power is an assumption";

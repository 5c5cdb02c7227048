/** What an MFU counts, in words: it is never printed without. */
import { formatFlopRate } from "@trireme/core";
import type { ResolvedRun } from "@trireme/run";
import { hostOf } from "@trireme/topology";

/** The convention "model-full" of `modelFlops`, over the peak of the run's devices. */
export function mfuNote({ cluster, plan }: ResolvedRun): string {
  const { kind, peak } = hostOf(cluster, 0).accelerator;
  const rate = formatFlopRate(peak[plan.precision] ?? 0);
  const device = kind === "cpu" ? "a core's" : "a device's";
  return `model FLOPs, full attention, no recomputation, of ${device} ${rate} ${plan.precision}`;
}

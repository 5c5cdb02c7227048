/** What an MFU counts, in words: it is never printed without. */
import { formatFlopRate } from "@trireme/core";
import type { ResolvedRun } from "@trireme/run";
import { emulates, hostOf, peakOf } from "@trireme/topology";

/** The convention "model-full" of `modelFlops`, over the peak of the run's devices. */
export function mfuNote({ cluster, plan }: ResolvedRun): string {
  const { accelerator } = hostOf(cluster, 0);
  const { precision } = plan;
  const rate = formatFlopRate(peakOf(accelerator, precision) ?? 0);
  const device = accelerator.kind === "cpu" ? "a core's" : "a device's";
  const arithmetic = emulates(accelerator, precision)
    ? `fp32, which emulates ${precision}`
    : precision;
  return `model FLOPs, full attention, no recomputation, of ${device} ${rate} ${arithmetic}`;
}

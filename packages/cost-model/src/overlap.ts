/**
 * What communication costs when it runs beside compute: what outlasts it, and what it takes from
 * it. A collective's kernels hold 16 to 24 of a GPU's 108 to 132 multiprocessors while they run
 * (NCCL's channels) and share the memory with the rest, so compute beside them is slower by that.
 */
import type { Seconds } from "@trireme/core";

/** Fraction of the device that a running collective keeps from compute. */
export const overlapContention = 0.17;

/**
 * Seconds that communication of `time` adds to compute of `behind`, at least `least` of it before or
 * after the compute.
 */
export function overlapped(time: Seconds, behind: Seconds, least: Seconds): Seconds {
  const exposed = Math.min(time, Math.max(time - behind, least));
  return exposed + overlapContention * (time - exposed);
}

/**
 * Which measurements a fit sees and which judge it: shapes, not lines, are shared out, so that no shape is on both
 * sides.
 */
import { hash32 } from "@trireme/core";
import type { Measurement } from "./measurement.ts";

/** Measurements to fit, and measurements of other shapes to judge the fit by. */
export interface Split {
  readonly train: readonly Measurement[];
  readonly test: readonly Measurement[];
}

/** Puts about `share` of the shapes aside; the same shapes for the same seed, whatever the order of lines. */
export function splitByShape(
  measurements: readonly Measurement[],
  share: number,
  seed: number,
): Split {
  const train: Measurement[] = [];
  const test: Measurement[] = [];
  for (const m of measurements) {
    // A product's gradients have its dimensions in another order.
    const hash = hash32(seed, ...m.operator.shape.toSorted((a, b) => a - b));
    (hash / 2 ** 32 < share ? test : train).push(m);
  }
  return { train, test };
}

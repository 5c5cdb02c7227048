/** AdamW with decoupled weight decay (Loshchilov, Hutter, 2019) over what a rank updates. */
import type { Bucket } from "./bucket.ts";
import { gradientPart, readGradients } from "../memory/gradient-block.ts";

/** The constants of Adam and what is built on it. */
export interface AdamOptions {
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
  readonly weightDecay: number;
}

/** How weights move. */
export interface OptimizerOptions extends AdamOptions {
  readonly kind: "adamw" | "lamb";
  /** Largest norm that the gradient keeps; 0 for no limit. */
  readonly clip: number;
}

/**
 * One update of the rank's segment of a bucket. `update` counts from 1 (the moments' bias correction
 * uses it); gradients are multiplied by `gradientScale`, the clipping factor, as they are read.
 */
export function adamw(
  bucket: Bucket,
  options: AdamOptions,
  update: number,
  learningRate: number,
  gradientScale: number,
): void {
  const { beta1, beta2, epsilon, weightDecay } = options;
  const correction1 = 1 - beta1 ** update;
  const correction2 = 1 - beta2 ** update;
  const { kernels, segment } = bucket.place;
  const { value, gradient, firstMoment, secondMoment } = segment;
  for (const parameter of bucket.parameters) {
    const { start, count } = parameter.updated;
    if (count === 0) continue;
    readGradients(bucket.place, gradientPart(gradient, start, count), (gradients, at, some) => {
      const from = (start + at) * 4;
      kernels.adamw(
        value.pointer + from,
        gradients,
        firstMoment.pointer + from,
        secondMoment.pointer + from,
        some,
        learningRate,
        beta1,
        beta2,
        epsilon,
        parameter.spec.decays ? weightDecay : 0,
        correction1,
        correction2,
        gradientScale,
      );
    });
  }
}

/** The factor that brings a gradient of this norm down to `clip`; 1 when it is below, or clip is 0. */
export function clipFactor(norm: number, clip: number): number {
  return clip > 0 && norm > clip ? clip / norm : 1;
}

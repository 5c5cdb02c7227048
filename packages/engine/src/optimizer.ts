/** AdamW with decoupled weight decay (Loshchilov, Hutter, 2019) over what a rank updates. */
import type { Bucket } from "./bucket.ts";

/** The constants of AdamW. */
export interface AdamWOptions {
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
  readonly weightDecay: number;
}

/**
 * One update of the rank's segment of a bucket. `update` counts from 1 (the moments' bias correction
 * uses it); gradients are multiplied by `gradientScale`, the clipping factor, as they are read.
 */
export function adamw(
  { parameters, place: { kernels, segment } }: Bucket,
  options: AdamWOptions,
  update: number,
  learningRate: number,
  gradientScale: number,
): void {
  const { beta1, beta2, epsilon, weightDecay } = options;
  const correction1 = 1 - beta1 ** update;
  const correction2 = 1 - beta2 ** update;
  const { start, value, gradient, firstMoment, secondMoment } = segment;
  for (const { offset, size, spec } of parameters) {
    const from = Math.max(offset, start) - start;
    const end = Math.min(offset + size, start + value.size) - start;
    if (from >= end) continue;
    kernels.adamw(
      value.pointer + from * 4,
      gradient.pointer + from * 4,
      firstMoment.pointer + from * 4,
      secondMoment.pointer + from * 4,
      end - from,
      learningRate,
      beta1,
      beta2,
      epsilon,
      spec.decays ? weightDecay : 0,
      correction1,
      correction2,
      gradientScale,
    );
  }
}

/** The factor that brings a gradient of this norm down to `clip`; 1 when it is below, or clip is 0. */
export function clipFactor(norm: number, clip: number): number {
  return clip > 0 && norm > clip ? clip / norm : 1;
}

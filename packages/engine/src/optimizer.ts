/** AdamW with decoupled weight decay (Loshchilov, Hutter, 2019) over a rank's parameters. */
import type { Kernels } from "./kernels/kernels.ts";
import type { ParameterSet } from "./parameters.ts";

/** The constants of AdamW. */
export interface AdamWOptions {
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
  readonly weightDecay: number;
}

/**
 * One update. `update` counts from 1 (the moments' bias correction uses it); gradients are
 * multiplied by `gradientScale`, the clipping factor, as they are read.
 */
export function adamw(
  kernels: Kernels,
  parameters: ParameterSet,
  options: AdamWOptions,
  update: number,
  learningRate: number,
  gradientScale: number,
): void {
  const { beta1, beta2, epsilon, weightDecay } = options;
  const correction1 = 1 - beta1 ** update;
  const correction2 = 1 - beta2 ** update;
  for (const { value, gradient, firstMoment, secondMoment, decays } of parameters.list) {
    kernels.adamw(
      value.pointer,
      gradient.pointer,
      firstMoment.pointer,
      secondMoment.pointer,
      value.size,
      learningRate,
      beta1,
      beta2,
      epsilon,
      decays ? weightDecay : 0,
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

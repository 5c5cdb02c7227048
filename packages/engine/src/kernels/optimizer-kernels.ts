/** Kernels that move weights; conventions as those of `Kernels`. */
export interface OptimizerKernels {
  /**
   * One AdamW update of n parameters in place, with g = gradientScale * gradient:
   * m = beta1 m + (1 - beta1) g, v = beta2 v + (1 - beta2) g^2, and
   * p -= learningRate * ((m / correction1) / (sqrt(v / correction2) + epsilon) + weightDecay * p),
   * where correction_i = 1 - beta_i^step (Loshchilov and Hutter 2019, algorithm 2).
   */
  adamw(
    parameter: number,
    gradient: number,
    m: number,
    v: number,
    n: number,
    learningRate: number,
    beta1: number,
    beta2: number,
    epsilon: number,
    weightDecay: number,
    correction1: number,
    correction2: number,
    gradientScale: number,
  ): void;

  /**
   * First pass of LAMB: moments of n parameters as in `adamw`, and to sums[2], float64 on 8 bytes, are
   * added the squares of the parameters and of their direction
   * (m / correction1) / (sqrt(v / correction2) + epsilon) + weightDecay * p
   * (You et al. 2020, algorithm 2).
   */
  lambMoments(
    parameter: number,
    gradient: number,
    m: number,
    v: number,
    n: number,
    beta1: number,
    beta2: number,
    epsilon: number,
    weightDecay: number,
    correction1: number,
    correction2: number,
    gradientScale: number,
    sums: number,
  ): void;
  /** Second pass: p -= rate * direction. */
  lambUpdate(
    parameter: number,
    m: number,
    v: number,
    n: number,
    rate: number,
    epsilon: number,
    weightDecay: number,
    correction1: number,
    correction2: number,
  ): void;
}

/** Noise that makes a router explore while it trains; the stream of random numbers is the caller's. */
import { TriremeError, type Rng } from "@trireme/core";
import { type Floats, floatsLike } from "./routing.ts";
import { requireInteger, requireLength } from "./shape.ts";

/** Noisy logits, and the standard normal deviates in them, which the gradient needs. */
export interface NoisyLogits {
  readonly logits: Floats;
  readonly deviates: Floats;
}

/**
 * Noisy top-k gating (Shazeer et al., arXiv:1701.06538 eq. 4): logits + N(0, 1)·softplus(spread),
 * with `spread` [T, E] a second projection of the token. Route the result.
 */
export function noisyLogits(logits: Floats, spread: Floats, rng: Rng): NoisyLogits {
  requireLength("spread", spread, logits.length, `${logits.length} logits`);
  const noisy = floatsLike(logits, logits.length);
  const deviates = floatsLike(logits, logits.length);
  for (let i = 0; i < logits.length; i++) {
    const z = rng.normal();
    deviates[i] = z;
    noisy[i] = logits[i]! + z * softplus(spread[i]!);
  }
  return { logits: noisy, deviates };
}

/** Gradient with respect to `spread`, given that with respect to the noisy logits (which is also the logits'). */
export function spreadGradient(spread: Floats, deviates: Floats, gradient: Floats): Floats {
  requireLength("deviates", deviates, spread.length, `${spread.length} spreads`);
  requireLength("gradient", gradient, spread.length, `${spread.length} spreads`);
  const out = floatsLike(spread, spread.length);
  for (let i = 0; i < spread.length; i++) {
    out[i] = (gradient[i]! * deviates[i]!) / (1 + Math.exp(-spread[i]!));
  }
  return out;
}

/**
 * Factors for every element of a router's input, uniform in [1 − ε, 1 + ε) (Switch
 * Transformer §2.2, "input jitter"). The gradient is multiplied by the same factors.
 */
export function jitterFactors(length: number, epsilon: number, rng: Rng): Float32Array {
  if (!(epsilon >= 0 && epsilon < 1)) {
    throw new TriremeError(
      "MOE_RANGE",
      `jitter epsilon is ${epsilon}; it must be in [0, 1), such as 0.01`,
    );
  }
  requireInteger("length", length, 0);
  const factors = new Float32Array(length);
  for (let i = 0; i < length; i++) factors[i] = 1 + epsilon * (2 * rng.float() - 1);
  return factors;
}

/** log(1 + eˣ) without overflow. */
function softplus(x: number): number {
  return Math.max(x, 0) + Math.log1p(Math.exp(-Math.abs(x)));
}

/** Random variation of computing, the same on every machine and in every order of events. */
import { type Rng, createRng, hash32 } from "@trireme/core";

/** Log-normal variation: each computation takes its time × exp(σz − σ²/2), whose mean is 1. */
export interface Jitter {
  readonly seed: number;
  /** Standard deviation σ of the logarithm; 0.01 is one per cent. */
  readonly deviation: number;
}

/** The factor of one computation: of a rank, by its place among the rank's instructions. */
export function jitterFactor({ seed, deviation }: Jitter, rank: number, place: number): number {
  const rng: Rng = createRng(hash32(seed, rank, place));
  return Math.exp(deviation * rng.normal() - (deviation * deviation) / 2);
}

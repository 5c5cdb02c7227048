/**
 * Seeded random numbers. The generator is splitmix32 (Steele, Lea, Flood: Fast splittable
 * pseudorandom number generators, OOPSLA 2014, in its 32-bit form): 32 bits of state, so that a
 * stream can be stored, forked by key and resumed exactly on every machine.
 */
import { TriremeError } from "./error.ts";

/** A stream of random numbers; the same seed gives the same stream on every machine. */
export interface Rng {
  /** The next 32-bit unsigned integer. */
  next(): number;
  /** A float in [0, 1) with 32 random bits. */
  float(): number;
  /** An integer in [0, n), without bias; n is an integer in 1..2³². */
  integer(n: number): number;
  /** A standard normal deviate (Box–Muller, one of the pair). */
  normal(): number;
  /** An independent stream for `key`; this stream does not move. */
  fork(key: number): Rng;
}

/** Mixes 32-bit integers into one: a stateless hash, uniform in [0, 2³²). */
export function hash32(...words: number[]): number {
  let h = 0x9e3779b9;
  for (const word of words) h = mix((h ^ word) + 0x9e3779b9);
  return h >>> 0;
}

/** The finaliser of splitmix32: a bijection of 32-bit integers. */
function mix(x: number): number {
  let t = x ^ (x >>> 16);
  t = Math.imul(t, 0x21f0aaad);
  t ^= t >>> 15;
  t = Math.imul(t, 0x735a2d97);
  return t ^ (t >>> 15);
}

/** A generator from an integer seed; its low 32 bits are used. */
export function createRng(seed: number): Rng {
  if (!Number.isSafeInteger(seed)) {
    throw new TriremeError("SEED", `seed ${seed} is not a safe integer; use one like 0`);
  }
  let state = seed | 0;
  const next = (): number => {
    state = (state + 0x9e3779b9) | 0;
    return mix(state) >>> 0;
  };
  const float = (): number => next() / 2 ** 32;
  return {
    next,
    float,
    integer(n) {
      if (!Number.isInteger(n) || n < 1 || n > 2 ** 32) {
        throw new TriremeError("RANGE", `integer(${n}): the bound must be an integer in 1..2^32`);
      }
      // Rejects the values above the largest multiple of n.
      const limit = 2 ** 32 - (2 ** 32 % n);
      for (;;) {
        const x = next();
        if (x < limit) return x % n;
      }
    },
    normal() {
      const radius = Math.sqrt(-2 * Math.log(1 - float()));
      return radius * Math.cos(2 * Math.PI * float());
    },
    fork: (key) => createRng(hash32(state, key)),
  };
}

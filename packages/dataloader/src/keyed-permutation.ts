/**
 * A shuffle without a shuffled array: a pseudorandom permutation of [0, n) evaluated at one point
 * in constant time and memory, so that any step of any epoch is found by arithmetic alone.
 *
 * An index is written as (left, right) with left in [0, a), right in [0, b), a = ⌈√n⌉, b = ⌈n/a⌉, and
 * goes through a Feistel network that adds modulo a and b in turn (Black and Rogaway, Ciphers with
 * arbitrary finite domains, CT-RSA 2002, §5). a·b exceeds n by less than a, so that walking the
 * cycle back into [0, n) hardly ever takes a second turn.
 */
import { TriremeError, hash32 } from "@trireme/core";

/** Luby and Rackoff need 4 rounds of a true random function; twice that for a cheap one. */
const rounds = 8;

/** Largest domain: indices stay exact in a double. */
const largest = 2 ** 53;

/**
 * The permutation of [0, n) that belongs to `key`, as a function from position to item. `n` is an
 * integer in 1..2⁵³, `key` a safe integer; a position outside [0, n) is refused. O(1) per call.
 */
export function keyedPermutation(n: number, key: number): (i: number) => number {
  if (!Number.isInteger(n) || n < 1 || n > largest) {
    throw new TriremeError(
      "RANGE",
      `a permutation of ${n} items: the count must be an integer in 1..2^53`,
    );
  }
  if (!Number.isSafeInteger(key)) {
    throw new TriremeError("SEED", `permutation key ${key} is not a safe integer; use one like 0`);
  }
  const a = Math.max(1, Math.ceil(Math.sqrt(n)));
  const b = Math.ceil(n / a);
  const high = Math.floor(key / 2 ** 32);
  const roundKeys = Int32Array.from({ length: rounds }, (_, round) => hash32(key, high, round));
  return (i) => {
    if (!Number.isInteger(i) || i < 0 || i >= n) {
      throw new TriremeError(
        "RANGE",
        `position ${i} is outside the permutation of ${n} items, 0..${n - 1}`,
      );
    }
    let left = Math.floor(i / b);
    let right = i - left * b;
    for (;;) {
      for (let round = 0; round < rounds; round += 2) {
        left = (left + mix(right, roundKeys[round]!)) % a;
        right = (right + mix(left, roundKeys[round + 1]!)) % b;
      }
      // Above 2⁵³ the product rounds, but never below n: the comparison stays exact.
      const item = left * b + right;
      if (item < n) return item;
    }
  };
}

/** The key of one epoch of one seed: 53 bits of both, each of which may exceed 32 bits. */
export function epochKey(seed: number, epoch: number): number {
  const words = [seed, Math.floor(seed / 2 ** 32), epoch, Math.floor(epoch / 2 ** 32)] as const;
  return hash32(...words, 0) * 2 ** 21 + (hash32(...words, 1) >>> 11);
}

/** MurmurHash3's finaliser over a value below 2³² and a round key: uniform in [0, 2³²). */
function mix(value: number, key: number): number {
  let h = value ^ key;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/**
 * Gemini (SOSP 2023): every machine keeps its checkpoint in m memories, its own and m − 1 others'. Where
 * m divides the machines, they form groups in which each keeps a copy of each; the machines that are
 * left over otherwise form, with one group, a ring in which each sends to the next m − 1. The recovery
 * probability is exact for any number of failures; the usual 1 − g·C(N−m, k−m)/C(N, k) for k failures
 * and g = N/m groups is so below 2m only, where no two groups can be lost at once.
 */
import { TriremeError } from "@trireme/core";

/** Which machines keep the copies of each machine: `copies[i]`, i itself first. */
export function geminiPlacement(
  machines: number,
  replicas: number,
): readonly (readonly number[])[] {
  const { grouped, ring } = shape(machines, replicas);
  return Array.from({ length: machines }, (_, machine) => {
    const inGroup = machine < grouped;
    const first = inGroup ? machine - (machine % replicas) : grouped;
    const size = inGroup ? replicas : ring;
    return Array.from(
      { length: replicas },
      (_unused, step) => first + ((machine - first + step) % size),
    );
  });
}

/** The probability that every checkpoint survives in memory when `failed` machines fail at once. */
export function geminiRecovery(machines: number, replicas: number, failed: number): number {
  const { grouped, ring } = shape(machines, replicas);
  if (!Number.isSafeInteger(failed) || failed < 0 || failed > machines) {
    throw new TriremeError("CHECKPOINT", `failed ${failed}: it is an integer in 0..${machines}`);
  }
  const unbroken = ring === 0 ? [1] : unbrokenRing(ring, replicas);
  // chance[j]: j failures are among the machines not looked at yet, and nothing is lost so far.
  let chance = new Float64Array(failed + 1);
  chance[failed] = 1;
  let left = machines;
  const look = (size: number, survives: (dead: number) => number): void => {
    const next = new Float64Array(failed + 1);
    for (let total = 0; total <= failed; total++) {
      if (chance[total] === 0) continue;
      for (let dead = 0; dead <= Math.min(size, total); dead++) {
        const p = hypergeometric(left, total, size, dead);
        next[total - dead]! += chance[total]! * p * survives(dead);
      }
    }
    chance = next;
    left -= size;
  };
  for (let first = 0; first < grouped; first += replicas) {
    look(replicas, (dead) => (dead === replicas ? 0 : 1));
  }
  if (ring > 0) look(ring, (dead) => unbroken[dead]!);
  return chance[0]!;
}

/** Machines in whole groups, and in the ring (0 where the groups take all). */
function shape(machines: number, replicas: number): { grouped: number; ring: number } {
  if (!Number.isSafeInteger(replicas) || replicas < 1)
    throw new TriremeError("CHECKPOINT", `replicas ${replicas}: it is an integer of at least 1`);
  if (!Number.isSafeInteger(machines) || machines < replicas || machines > 1e7) {
    throw new TriremeError(
      "CHECKPOINT",
      `machines ${machines}: it is an integer in ${replicas} (the replicas)..10^7`,
    );
  }
  if (machines % replicas === 0) return { grouped: machines, ring: 0 };
  const grouped = (Math.floor(machines / replicas) - 1) * replicas;
  return { grouped, ring: machines - grouped };
}

/** The chance that `size` of `all` machines, of which `dead` are dead, have exactly `hit` of them. */
function hypergeometric(all: number, dead: number, size: number, hit: number): number {
  if (hit > dead || size - hit > all - dead) return 0;
  let p = 1;
  for (let i = 0; i < hit; i++) p *= ((size - i) * (dead - i)) / ((i + 1) * (all - i));
  for (let i = 0; i < size - hit; i++) p *= (all - dead - i) / (all - hit - i);
  return p;
}

/** By number of failures in a ring, the chance that no `run` neighbours in it have all failed. */
function unbrokenRing(ring: number, run: number): readonly number[] {
  // Strings so far, counted by failures · run + failures at their end, for each number at their start.
  const counts = new Float64Array(ring + 1);
  for (let first = 0; first < run; first++) {
    // `first` failures, then a survivor, then anything whose runs stay short and join at the seam.
    let ways = new Map<number, number>([[first * run, 1]]);
    for (let at = first + 1; at < ring; at++) {
      const next = new Map<number, number>();
      const add = (key: number, count: number): void => {
        next.set(key, (next.get(key) ?? 0) + count);
      };
      for (const [key, count] of ways) {
        const current = key % run;
        const dead = (key - current) / run;
        add(dead * run, count);
        if (current + 1 < run) add((dead + 1) * run + current + 1, count);
      }
      ways = next;
    }
    for (const [key, count] of ways) {
      const current = key % run;
      if (current + first < run) counts[(key - current) / run]! += count;
    }
  }
  let all = 1;
  return Array.from(counts, (count, dead) => {
    const chance = count / all;
    all *= (ring - dead) / (dead + 1);
    return chance;
  });
}

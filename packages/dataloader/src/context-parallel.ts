/**
 * Sequences cut for context parallelism. Under a causal mask the last tokens attend to the most, so a
 * rank gets one chunk from the front and its mirror from the back: of 2·cp equal chunks, rank i has
 * chunks i and 2·cp − 1 − i, and all ranks have the same work (Llama 3, §3.3.2; Megatron-LM,
 * `get_batch_on_this_cp_rank`).
 */
import { TriremeError } from "@trireme/core";

/** A run of tokens, end exclusive. */
export interface Chunk {
  readonly start: number;
  readonly end: number;
}

/** The two chunks of a rank in a sequence of `length` tokens; one chunk of all of it where cp is 1. */
export function zigzagChunks(length: number, cp: number, rank: number): readonly Chunk[] {
  if (!Number.isInteger(cp) || cp < 1)
    throw new TriremeError("CONTEXT", `cp ${cp} is not a positive integer`);
  if (!Number.isInteger(rank) || rank < 0 || rank >= cp) {
    throw new TriremeError("CONTEXT", `context-parallel rank ${rank} is outside 0..${cp - 1}`);
  }
  if (!Number.isSafeInteger(length) || length < 0) {
    throw new TriremeError("CONTEXT", `a sequence of ${length} tokens; use a count`);
  }
  if (cp === 1) return [{ start: 0, end: length }];
  if (length % (2 * cp) !== 0) {
    const nearest = Math.max(1, Math.ceil(length / (2 * cp))) * 2 * cp;
    throw new TriremeError(
      "CONTEXT",
      `a sequence of ${length} tokens does not divide into 2 x cp(${cp}) = ${2 * cp} chunks; pad it to ${nearest}`,
    );
  }
  const size = length / (2 * cp);
  return [rank, 2 * cp - 1 - rank].map((chunk) => ({
    start: chunk * size,
    end: (chunk + 1) * size,
  }));
}

/**
 * What the length of a sequence must be a multiple of: 2·cp for zig-zag chunks, and with sequence
 * parallelism each rank's share of cp must divide over the tensor-parallel ranks as well.
 */
export function requiredMultiple(o: { cp: number; tp: number; sequenceParallel: boolean }): number {
  for (const [name, value] of Object.entries({ cp: o.cp, tp: o.tp })) {
    if (!Number.isInteger(value) || value < 1)
      throw new TriremeError("CONTEXT", `${name} ${value} is not a positive integer`);
  }
  const chunks = o.cp > 1 ? 2 * o.cp : 1;
  if (!o.sequenceParallel || o.tp === 1) return chunks;
  // length / cp must be a multiple of tp, and of 2 where there are two chunks of it.
  const share = o.cp > 1 ? lcm(2, o.tp) : o.tp;
  return o.cp * share;
}

/** Attention pairs of a rank's chunks under a causal mask: what makes the zig-zag even. */
export function causalPairs(chunks: readonly Chunk[]): number {
  // Token t attends to t + 1 tokens.
  return chunks.reduce(
    (sum, { start, end }) => sum + (end * (end + 1) - start * (start + 1)) / 2,
    0,
  );
}

function lcm(a: number, b: number): number {
  let [x, y] = [a, b];
  while (y !== 0) [x, y] = [y, x % y];
  return (a / x) * b;
}

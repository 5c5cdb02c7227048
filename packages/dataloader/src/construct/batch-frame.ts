/**
 * A share's step as 32-bit words, so that it can lie in shared memory: a head of step, share and
 * microbatches, then for each microbatch its rows, width and number of boundaries, and its columns one
 * after the other, the mask in whole words.
 */
import type { Microbatch, ShareBatch } from "./microbatch.ts";

const head = 4;
const microbatchHead = 3;

/** Words of a frame. */
export function frameWords({ microbatches }: ShareBatch): number {
  let words = head;
  for (const { tokens, boundaries, rows } of microbatches) {
    words +=
      microbatchHead + 3 * tokens.length + Math.ceil(tokens.length / 4) + rows + boundaries.length;
  }
  return words;
}

/** The most words that a share of so many samples takes, each at most a row of `width` tokens. */
export function frameBound(samples: number, width: number, microbatches: number): number {
  const perRow = 3 * width + Math.ceil(width / 4);
  // A row, its end, and for each sample a boundary and one more for its row's start.
  return head + microbatches * microbatchHead + samples * (perRow + 1 + 2);
}

/** Writes a frame at the start of `into`, which has room for its `frameWords`. */
export function encodeFrame(batch: ShareBatch, into: Int32Array): void {
  into.set([
    batch.step % 2 ** 31,
    Math.floor(batch.step / 2 ** 31),
    batch.share,
    batch.microbatches.length,
  ]);
  let at = head;
  const put = (values: Int32Array): void => {
    into.set(values, at);
    at += values.length;
  };
  for (const { rows, width, tokens, labels, positions, lossMask, ...ends } of batch.microbatches) {
    put(Int32Array.of(rows, width, ends.boundaries.length));
    for (const column of [tokens, labels, positions, ends.boundaryEnds, ends.boundaries])
      put(column);
    const words4 = Math.ceil(lossMask.length / 4);
    new Uint8Array(into.buffer, into.byteOffset + 4 * at, lossMask.length).set(lossMask);
    at += words4;
  }
}

/** Reads a frame; what it gives are views of `words`. */
export function decodeFrame(words: Int32Array): ShareBatch {
  const [low = 0, high = 0, share = 0, count = 0] = words;
  let at = head;
  const take = (length: number): Int32Array => words.subarray(at, (at += length));
  const microbatches = Array.from({ length: count }, (): Microbatch => {
    const [rows = 0, width = 0, boundaryCount = 0] = take(microbatchHead);
    const size = rows * width;
    const [tokens, labels, positions] = [take(size), take(size), take(size)];
    const [boundaryEnds, boundaries] = [take(rows), take(boundaryCount)];
    const lossMask = new Uint8Array(words.buffer, words.byteOffset + 4 * at, size);
    at += Math.ceil(size / 4);
    return { rows, width, tokens, labels, positions, lossMask, boundaryEnds, boundaries };
  });
  return { step: high * 2 ** 31 + low, share, microbatches };
}

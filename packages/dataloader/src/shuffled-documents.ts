/**
 * The documents of a stream in a shuffled order: Megatron's first shuffle, before samples are cut, so
 * that what lies in one sample is not always what lay side by side in the corpus.
 */
import { fingerprintTexts } from "./fingerprint.ts";
import { keyedPermutation } from "./keyed-permutation.ts";
import type { TokenSource } from "./token-source.ts";

/**
 * `source` read with its documents in the order that belongs to `key`. `ends` says where each document
 * ends. 8 bytes of memory a document; a read costs a binary search and one read per document it meets.
 */
export function shuffleDocuments(
  source: TokenSource,
  ends: Float64Array | Uint32Array,
  key: number,
): TokenSource {
  const count = ends.length;
  if (count < 2) return source;
  const order = keyedPermutation(count, key);
  const startOf = (document: number): number => (document === 0 ? 0 : ends[document - 1]!);
  /** Where each place in the new order ends. */
  const newEnds = new Float64Array(count);
  let length = 0;
  for (let place = 0; place < count; place++) {
    const document = order(place);
    length += ends[document]! - startOf(document);
    newEnds[place] = length;
  }
  return {
    length,
    fingerprint: fingerprintTexts([source.fingerprint, `documents shuffled by ${key}`]),
    read(start, into) {
      let place = firstAbove(newEnds, start);
      for (let done = 0; done < into.length; place++) {
        const document = order(place);
        const from = start + done - (place === 0 ? 0 : newEnds[place - 1]!);
        const take = Math.min(into.length - done, newEnds[place]! - (start + done));
        if (take > 0) source.read(startOf(document) + from, into.subarray(done, done + take));
        done += take;
      }
    },
  };
}

/** Index of the first of ascending values that is above `value`. */
function firstAbove(values: Float64Array, value: number): number {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (values[middle]! > value) high = middle;
    else low = middle + 1;
  }
  return low;
}

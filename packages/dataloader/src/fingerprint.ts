/**
 * A fingerprint of a dataset: two independent 32-bit lanes of MurmurHash3's x86 body over the values,
 * not over their bytes, so that it does not depend on how wide they are stored or on byte order.
 * It tells data sets apart by accident of configuration; it does not resist an adversary.
 */

class Lane {
  #state: number;
  #length = 0;

  constructor(seed: number) {
    this.#state = seed;
  }

  add(values: ArrayLike<number>): void {
    let h = this.#state;
    for (let i = 0; i < values.length; i++) {
      const k = Math.imul(values[i]!, 0xcc9e2d51);
      h ^= Math.imul((k << 15) | (k >>> 17), 0x1b873593);
      h = Math.imul((h << 13) | (h >>> 19), 5) + 0xe6546b64;
    }
    this.#state = h;
    this.#length += values.length;
  }

  digits(): string {
    let h = this.#state ^ this.#length;
    h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
    h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
    return ((h ^ (h >>> 16)) >>> 0).toString(16).padStart(8, "0");
  }
}

/** 16 hex digits over the tokens, the ends of documents and the size of the vocabulary. */
export function fingerprint(
  tokens: ArrayLike<number>,
  documents: Float64Array | Uint32Array,
  vocabulary: number,
): string {
  // Ends are split in two words: they may exceed 2³².
  const high = Float64Array.from(documents, (end) => Math.floor(end / 2 ** 32));
  const low = Float64Array.from(documents, (end) => end % 2 ** 32);
  return [0x2545f491, 0x9e3779b9]
    .map((seed) => {
      const lane = new Lane(seed);
      lane.add(tokens);
      lane.add(high);
      lane.add(low);
      lane.add([tokens.length, documents.length, vocabulary]);
      return lane.digits();
    })
    .join("");
}

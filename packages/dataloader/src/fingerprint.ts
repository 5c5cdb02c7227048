/**
 * Fingerprints of data: two independent 32-bit lanes of MurmurHash3's x86 body over values, not over
 * their bytes, so that they do not depend on how wide the values are stored or on byte order. They
 * tell data apart by accident of configuration; they do not resist an adversary.
 */
import { type ByteReader, readBytes } from "./byte-reader.ts";

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

/** 16 hex digits over lists of 32-bit integers and over how long each list is. */
export function fingerprintValues(lists: Iterable<ArrayLike<number>>): string {
  const lanes = [new Lane(0x2545f491), new Lane(0x9e3779b9)];
  for (const list of lists) {
    for (const lane of lanes) {
      lane.add(list);
      lane.add(words(list.length));
    }
  }
  return lanes.map((lane) => lane.digits()).join("");
}

/** 16 hex digits over texts. */
export function fingerprintTexts(texts: readonly string[]): string {
  return fingerprintValues(texts.map((text) => new TextEncoder().encode(text)));
}

/** 16 hex digits over the tokens, the ends of documents and the size of the vocabulary. */
export function fingerprint(
  tokens: ArrayLike<number>,
  documents: Float64Array | Uint32Array,
  vocabulary: number,
): string {
  return fingerprintValues([tokens, ...wordLists(documents), words(vocabulary)]);
}

/** Low and high words of integers that may exceed 2³². */
export function wordLists(
  values: Float64Array | Uint32Array,
): readonly [Float64Array, Float64Array] {
  return [
    Float64Array.from(values, (value) => value % 2 ** 32),
    Float64Array.from(values, (value) => Math.floor(value / 2 ** 32)),
  ];
}

const blocks = 64;
const blockBytes = 4096;

/**
 * What stands for the content of a large file in a fingerprint: its size, and up to 64 blocks of 4 KiB
 * spread evenly from its start to its end. All of a file below 256 KiB.
 */
export function* sampledBytes(reader: ByteReader): Generator<ArrayLike<number>> {
  yield words(reader.size);
  const last = Math.max(0, reader.size - blockBytes);
  const count = Math.min(blocks, Math.ceil(reader.size / blockBytes));
  for (let i = 0; i < count; i++) {
    const offset = count === 1 ? 0 : Math.floor((last * i) / (count - 1));
    yield readBytes(reader, offset, Math.min(blockBytes, reader.size - offset));
  }
}

function words(value: number): readonly number[] {
  return [value % 2 ** 32, Math.floor(value / 2 ** 32)];
}

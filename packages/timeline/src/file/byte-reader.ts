/** Bytes to numbers: the inverse of `ByteWriter`. Reading past the end throws RangeError. */

// See byte-writer.ts: word 0 is the low one.
const bits = new Float64Array(1);
const words = new Uint32Array(bits.buffer);

export class ByteReader {
  readonly #bytes: Uint8Array;
  #at = 0;
  #zeros = 0;

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  /** Whether all bytes were read. */
  get done(): boolean {
    return this.#at === this.#bytes.length && this.#zeros === 0;
  }

  byte(): number {
    const value = this.#bytes[this.#at++];
    if (value === undefined) throw new RangeError("more was read than is there");
    return value;
  }

  varint(): number {
    let value = 0;
    let scale = 1;
    for (;;) {
      const byte = this.byte();
      value += (byte & 127) * scale;
      if (byte < 128) break;
      scale *= 128;
    }
    if (!Number.isSafeInteger(value)) throw new RangeError(`integer ${value} is above 2^53 - 1`);
    return value;
  }

  signed(): number {
    if (this.#zeros > 0) {
      this.#zeros--;
      return 0;
    }
    const value = this.varint();
    if (value === 0) {
      this.#zeros = this.varint();
      return 0;
    }
    return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
  }

  real(prediction: number): number {
    if (this.#zeros > 0) {
      this.#zeros--;
      return prediction;
    }
    const header = this.byte();
    if (header === 0) {
      this.#zeros = this.varint();
      return prediction;
    }
    const first = header >> 4;
    const end = first + (header & 15);
    if (end > 8) throw new RangeError(`a real of bytes ${first} to ${end}`);
    let [low, high] = [0, 0];
    for (let i = first; i < end; i++) {
      if (i < 4) low |= this.byte() << (8 * i);
      else high |= this.byte() << (8 * i - 32);
    }
    bits[0] = prediction;
    words[0] = words[0]! ^ low;
    words[1] = words[1]! ^ high;
    return bits[0];
  }
}

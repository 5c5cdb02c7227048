/**
 * Numbers to bytes. Integers are varints (seven bits a byte, lowest first, the top bit says that more
 * follow); runs of zeros are counted; reals are the bits in which they differ from a prediction.
 */

// JavaScript engines run on little-endian machines only: word 0 is the low one.
const real = new Float64Array(1);
const words = new Uint32Array(real.buffer);

export class ByteWriter {
  #bytes: Uint8Array;
  #at = 0;
  /** Zeros that were written and not yet counted out. */
  #zeros = 0;

  constructor(capacity: number) {
    this.#bytes = new Uint8Array(Math.max(64, capacity));
  }

  /** What was written, as a copy. */
  finish(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(0, this.#at);
  }

  byte(value: number): void {
    if (this.#at === this.#bytes.length) this.#grow(1);
    this.#bytes[this.#at++] = value;
  }

  uint32(value: number): void {
    for (let shift = 0; shift < 32; shift += 8) this.byte((value >>> shift) & 255);
  }

  /** An integer in 0..2^53 - 1. */
  varint(value: number): void {
    if (this.#at + 8 > this.#bytes.length) this.#grow(8);
    let rest = value;
    // Above 2^31 shifts would lose bits.
    while (rest >= 2 ** 31) {
      this.#bytes[this.#at++] = (rest % 128) | 128;
      rest = Math.floor(rest / 128);
    }
    while (rest >= 128) {
      this.#bytes[this.#at++] = (rest & 127) | 128;
      rest >>>= 7;
    }
    this.#bytes[this.#at++] = rest;
  }

  /** One integer of a column: zigzag, small magnitudes of both signs short, zeros counted. */
  signed(value: number): void {
    if (value === 0) {
      this.#zeros++;
      return;
    }
    if (this.#zeros > 0) this.endRun();
    this.varint(value < 0 ? -2 * value - 1 : 2 * value);
  }

  /** One real of a column: its bits exclusive-or those of its prediction, without zero bytes at both ends. */
  real(value: number, prediction: number): void {
    real[0] = prediction;
    let low = words[0]!;
    let high = words[1]!;
    real[0] = value;
    low = (low ^ words[0]!) >>> 0;
    high = (high ^ words[1]!) >>> 0;
    if (low === 0 && high === 0) {
      this.#zeros++;
      return;
    }
    if (this.#zeros > 0) this.endRun();
    let first = 0;
    while (((first < 4 ? low >>> (8 * first) : high >>> (8 * first - 32)) & 255) === 0) first++;
    const end = high === 0 ? 4 - (Math.clz32(low) >> 3) : 8 - (Math.clz32(high) >> 3);
    if (this.#at + 9 > this.#bytes.length) this.#grow(9);
    this.#bytes[this.#at++] = end - first + 16 * first;
    for (let i = first; i < end; i++) {
      this.#bytes[this.#at++] = i < 4 ? low >>> (8 * i) : high >>> (8 * i - 32);
    }
  }

  /** Ends a column: writes out the zeros at its end. */
  endRun(): void {
    if (this.#zeros === 0) return;
    const more = this.#zeros - 1;
    this.#zeros = 0;
    this.byte(0);
    this.varint(more);
  }

  #grow(by: number): void {
    const grown = new Uint8Array(Math.max(this.#bytes.length * 2, this.#at + by));
    grown.set(this.#bytes);
    this.#bytes = grown;
  }
}

/** Lists of numbers that grow, in typed arrays: millions of entries without an object for any. */

/** A list of 32-bit integers. */
export class IntegerColumn {
  #values: Int32Array;
  #length = 0;

  /** @param capacity Entries held before it grows. */
  constructor(capacity = 16) {
    this.#values = new Int32Array(Math.max(1, capacity));
  }

  get length(): number {
    return this.#length;
  }

  /** Appends a number and returns its place. */
  push(value: number): number {
    const at = this.#length++;
    if (at === this.#values.length) {
      const grown = new Int32Array(2 * at);
      grown.set(this.#values);
      this.#values = grown;
    }
    this.#values[at] = value;
    return at;
  }

  /** An entry. */
  at(place: number): number {
    return this.#values[place]!;
  }

  /** The entries so far; a view that later entries do not change in length. */
  view(): Int32Array {
    return this.#values.subarray(0, this.#length);
  }
}

/** A list of 64-bit floats. */
export class RealColumn {
  #values: Float64Array;
  #length = 0;

  /** @param capacity Entries held before it grows. */
  constructor(capacity = 16) {
    this.#values = new Float64Array(Math.max(1, capacity));
  }

  get length(): number {
    return this.#length;
  }

  /** Appends a number and returns its place. */
  push(value: number): number {
    const at = this.#length++;
    if (at === this.#values.length) {
      const grown = new Float64Array(2 * at);
      grown.set(this.#values);
      this.#values = grown;
    }
    this.#values[at] = value;
    return at;
  }

  /** The entries so far; a view that later entries do not change in length. */
  view(): Float64Array {
    return this.#values.subarray(0, this.#length);
  }
}

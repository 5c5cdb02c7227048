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
    const at = this.#length === this.#values.length ? this.#extend(1) : this.#length++;
    this.#values[at] = value;
    return at;
  }

  /** Appends numbers and returns the place of the first. */
  append(values: ArrayLike<number>): number {
    const at = this.#extend(values.length);
    this.#values.set(values, at);
    return at;
  }

  /** Appends a number so many times and returns the place of the first. */
  fill(value: number, count: number): number {
    const at = this.#extend(count);
    this.#values.fill(value, at, at + count);
    return at;
  }

  /** An entry. */
  at(place: number): number {
    return this.#values[place]!;
  }

  /** Makes room for so many more numbers. */
  reserve(count: number): void {
    if (this.#length + count > this.#values.length) this.#grow(this.#length + count);
  }

  #extend(count: number): number {
    const at = this.#length;
    this.#length += count;
    const slots = this.#values.length;
    if (this.#length > slots) this.#grow(Math.max(2 * slots, this.#length));
    return at;
  }

  #grow(slots: number): void {
    const grown = new Int32Array(slots);
    grown.set(this.#values);
    this.#values = grown;
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
    const at = this.#length === this.#values.length ? this.#extend(1) : this.#length++;
    this.#values[at] = value;
    return at;
  }

  /** Appends numbers and returns the place of the first. */
  append(values: ArrayLike<number>): number {
    const at = this.#extend(values.length);
    this.#values.set(values, at);
    return at;
  }

  /** Appends a number so many times and returns the place of the first. */
  fill(value: number, count: number): number {
    const at = this.#extend(count);
    this.#values.fill(value, at, at + count);
    return at;
  }

  /** Makes room for so many more numbers. */
  reserve(count: number): void {
    if (this.#length + count > this.#values.length) this.#grow(this.#length + count);
  }

  #extend(count: number): number {
    const at = this.#length;
    this.#length += count;
    const slots = this.#values.length;
    if (this.#length > slots) this.#grow(Math.max(2 * slots, this.#length));
    return at;
  }

  #grow(slots: number): void {
    const grown = new Float64Array(slots);
    grown.set(this.#values);
    this.#values = grown;
  }

  /** The entries so far; a view that later entries do not change in length. */
  view(): Float64Array {
    return this.#values.subarray(0, this.#length);
  }
}

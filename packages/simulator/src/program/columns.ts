/** Lists of numbers that grow, in typed arrays: millions of entries without an object for any. */

/** What a list asks of its array. */
interface Numbers<A> {
  readonly length: number;
  [place: number]: number;
  set(values: ArrayLike<number>, at?: number): void;
  fill(value: number, start: number, end: number): A;
  subarray(start: number, end: number): A;
}

/** A list of numbers of one kind. */
class Column<A extends Numbers<A>> {
  readonly #make: (slots: number) => A;
  #values: A;
  #length = 0;

  /** @param make An array of that kind. */
  constructor(make: (slots: number) => A, capacity: number) {
    this.#make = make;
    this.#values = make(Math.max(1, capacity));
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
    const grown = this.#make(slots);
    grown.set(this.#values);
    this.#values = grown;
  }

  /** The entries so far; a view that later entries do not change in length. */
  view(): A {
    return this.#values.subarray(0, this.#length);
  }
}

/** A list of 32-bit integers. */
export class IntegerColumn extends Column<Int32Array> {
  /** @param capacity Entries held before it grows. */
  constructor(capacity = 16) {
    super((slots) => new Int32Array(slots), capacity);
  }
}

/** A list of 64-bit floats. */
export class RealColumn extends Column<Float64Array> {
  /** @param capacity Entries held before it grows. */
  constructor(capacity = 16) {
    super((slots) => new Float64Array(slots), capacity);
  }
}

/**
 * What the chunks of all ranks hold while a plan is followed: for every (rank, chunk) the set of
 * ranks whose data is in it. Sums along a ring are runs of neighbours, so a set is kept as a
 * circular run (start, length) as long as it is one, and as bits otherwise.
 */

export class Contributions {
  readonly #ranks: number;
  readonly #start: Int32Array;
  /** Length of the run; -1 - i where the set is `#bits[i]`. */
  readonly #length: Int32Array;
  readonly #bits: Uint32Array[] = [];

  constructor(ranks: number, cells: number) {
    this.#ranks = ranks;
    this.#start = new Int32Array(cells);
    this.#length = new Int32Array(cells);
  }

  /** Puts the data of one rank into a cell. */
  put(cell: number, rank: number): void {
    this.#start[cell] = rank;
    this.#length[cell] = 1;
  }

  empty(cell: number): boolean {
    return this.#length[cell] === 0;
  }

  full(cell: number): boolean {
    return this.#length[cell] === this.#ranks;
  }

  /** Whether the cell holds exactly the data of this rank. */
  only(cell: number, rank: number): boolean {
    return this.#length[cell] === 1 && this.#start[cell] === rank;
  }

  /** Reads a cell for `write` and `add`: two numbers that stay valid when the cell changes. */
  startOf(cell: number): number {
    return this.#start[cell]!;
  }

  lengthOf(cell: number): number {
    return this.#length[cell]!;
  }

  write(cell: number, start: number, length: number): void {
    this.#start[cell] = start;
    this.#length[cell] = length;
  }

  /** Adds a set to a cell; -1 when that is allowed, else a rank that is in both. */
  add(cell: number, start: number, length: number, again: boolean): number {
    const n = this.#ranks;
    const s = this.#start[cell]!;
    const l = this.#length[cell]!;
    if (l === 0) {
      this.write(cell, start, length);
      return -1;
    }
    if (l > 0 && length > 0) {
      if (l + length <= n) {
        const after = (s + l) % n;
        if (after === start) {
          this.#run(cell, s, l + length);
          return -1;
        }
        if ((start + length) % n === s) {
          this.#run(cell, start, l + length);
          return -1;
        }
      }
    }
    const a = this.#asBits(s, l);
    const b = this.#asBits(start, length);
    let members = 0;
    for (let word = 0; word < a.length; word++) {
      const both = a[word]! & b[word]!;
      if (both !== 0 && !again) return 32 * word + (31 - Math.clz32(both));
      a[word]! |= b[word]!;
      members += ones(a[word]!);
    }
    if (members === n) {
      this.#run(cell, 0, n);
      return -1;
    }
    this.#length[cell] = -this.#bits.push(a);
    return -1;
  }

  #run(cell: number, start: number, length: number): void {
    this.#start[cell] = length === this.#ranks ? 0 : start;
    this.#length[cell] = length;
  }

  /** A fresh copy of the set as bits. */
  #asBits(start: number, length: number): Uint32Array {
    if (length < 0) return this.#bits[-1 - length]!.slice();
    const bits = new Uint32Array(Math.ceil(this.#ranks / 32));
    for (let i = 0; i < length; i++) {
      const rank = (start + i) % this.#ranks;
      bits[rank >>> 5]! |= 1 << (rank & 31);
    }
    return bits;
  }

  /** The members of a cell, ascending. */
  members(cell: number): number[] {
    const bits = this.#asBits(this.#start[cell]!, this.#length[cell]!);
    const all: number[] = [];
    for (let r = 0; r < this.#ranks; r++) if ((bits[r >>> 5]! >>> (r & 31)) & 1) all.push(r);
    return all;
  }
}

function ones(word: number): number {
  let x = word - ((word >>> 1) & 0x55555555);
  x = (x & 0x33333333) + ((x >>> 2) & 0x33333333);
  return Math.imul((x + (x >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

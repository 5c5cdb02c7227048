/** First-fit and best-fit decreasing over whole numbers: which bin each item goes into. */

/** Bins, numbered in order of opening. */
export interface BinAssignment {
  /** The bin of each item. */
  readonly rowOf: Uint32Array;
  /** Bins opened. */
  readonly rows: number;
  /** Items in the order in which they were placed: largest first. */
  readonly order: Uint32Array;
}

/** Items by size, largest first and in their own order where equal: a counting sort where that is less work. */
function decreasing(sizes: Uint32Array, capacity: number): Uint32Array {
  if (capacity > 16 * sizes.length + 1024) {
    return Uint32Array.from(sizes, (_, i) => i).sort((a, b) => sizes[b]! - sizes[a]! || a - b);
  }
  const start = new Uint32Array(capacity + 2);
  for (const size of sizes) start[capacity - size + 1]!++;
  for (let k = 1; k < start.length; k++) start[k]! += start[k - 1]!;
  const order = new Uint32Array(sizes.length);
  for (let i = 0; i < sizes.length; i++) order[start[capacity - sizes[i]!]!++] = i;
  return order;
}

/**
 * First-fit decreasing: each item, largest first, into the lowest bin with room. A tournament tree over
 * the room of the bins finds it in O(log n). Sizes are at least 1 and at most `capacity`.
 */
export function fillFirstFit(sizes: Uint32Array, capacity: number): BinAssignment {
  const rowOf = new Uint32Array(sizes.length);
  let leaves = 1;
  while (leaves < sizes.length) leaves *= 2;
  // Node k has the most room below it; bins not opened yet have it all, so the search opens them in turn.
  const room = new Float64Array(2 * leaves).fill(capacity);
  let rows = 0;
  const order = decreasing(sizes, capacity);
  for (const item of order) {
    const size = sizes[item]!;
    let node = 1;
    while (node < leaves) {
      node *= 2;
      if (room[node]! < size) node++;
    }
    const row = node - leaves;
    rows = Math.max(rows, row + 1);
    rowOf[item] = row;
    room[node]! -= size;
    for (node >>>= 1; node > 0; node >>>= 1) {
      room[node] = Math.max(room[2 * node]!, room[2 * node + 1]!);
    }
  }
  return { rowOf, rows, order };
}

/**
 * Best-fit decreasing: each item, largest first, into the bin with the least room that is enough, of
 * equals the one filled last. Bins hang in stacks by their room; which stacks are not empty is a tree
 * of bits, searched in O(log₃₂ capacity). Sizes are at least 1 and at most `capacity`.
 */
export function fillBestFit(sizes: Uint32Array, capacity: number): BinAssignment {
  const rowOf = new Uint32Array(sizes.length);
  const rooms = new BitTree(capacity + 1);
  /** Top bin of each stack, and below each bin the next; bins from 1, 0 for none. */
  const top = new Uint32Array(capacity + 1);
  const below = new Uint32Array(sizes.length + 1);
  let rows = 0;
  const order = decreasing(sizes, capacity);
  for (const item of order) {
    const size = sizes[item]!;
    let room = rooms.atLeast(size);
    let bin: number;
    if (room === -1) {
      bin = ++rows;
      room = capacity;
    } else {
      bin = top[room]!;
      top[room] = below[bin]!;
      if (top[room] === 0) rooms.remove(room);
    }
    rowOf[item] = bin - 1;
    const left = room - size;
    if (left > 0) {
      below[bin] = top[left]!;
      if (top[left] === 0) rooms.add(left);
      top[left] = bin;
    }
  }
  return { rowOf, rows, order };
}

/** A set of integers in [0, size) that finds the least member at or above a value. */
class BitTree {
  /** Level 0 has a bit per value; a bit above says that its word below is not zero. */
  readonly #levels: Uint32Array[] = [];

  constructor(size: number) {
    let words = size;
    do {
      words = Math.ceil(words / 32);
      this.#levels.push(new Uint32Array(words));
    } while (words > 1);
  }

  add(value: number): void {
    let at = value;
    for (const level of this.#levels) {
      level[at >>> 5]! |= 1 << (at & 31);
      at >>>= 5;
    }
  }

  remove(value: number): void {
    let at = value;
    for (const level of this.#levels) {
      level[at >>> 5]! &= ~(1 << (at & 31));
      if (level[at >>> 5] !== 0) return;
      at >>>= 5;
    }
  }

  /** The least member at or above `value`; -1 where there is none. */
  atLeast(value: number): number {
    let at = value;
    for (let k = 0; k < this.#levels.length; k++) {
      const level = this.#levels[k]!;
      if (at >>> 5 >= level.length) return -1;
      const rest = level[at >>> 5]! & (-1 << (at & 31));
      if (rest !== 0) {
        at = (at & ~31) | lowestBit(rest);
        while (k > 0) at = (at << 5) | lowestBit(this.#levels[--k]![at]!);
        return at;
      }
      at = (at >>> 5) + 1;
    }
    return -1;
  }
}

function lowestBit(word: number): number {
  return 31 - Math.clz32(word & -word);
}

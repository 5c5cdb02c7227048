/**
 * Tokens for heads and back (Jacobs et al., DeepSpeed-Ulysses, 2023): of rows whose columns are
 * sections of heads, each rank gives away all heads but its own, and gets its own of all tokens.
 */
import type { LayerGroup } from "../layout/recorded-group.ts";
import { type Tape, type Variable, gradientOf } from "../tape/tape.ts";
import { type Tensor, matrixDims, view } from "../memory/tensor.ts";

/** x [batch·tokens, Σ sections] to [batch·tokens·ranks, Σ sections / ranks]. */
export function exchangeTokens(
  tape: Tape,
  x: Variable,
  sections: readonly number[],
  batch: number,
  group: LayerGroup,
): Variable {
  const [rows, width] = matrixDims(x.value);
  const y = tape.variable([rows * group.ranks, width / group.ranks]);
  const move = new HeadExchange(tape, sections, rows / batch, batch, group);
  move.toHeads(x.value, y.value);
  tape.record({
    input: () => {
      const dx = tape.allocate(x.value.dims);
      move.toTokens(gradientOf(y), dx);
      tape.give(x, dx);
    },
    spent: () => [y.value, y.gradient],
  });
  return y;
}

/** The inverse: x [batch·tokens·ranks, Σ sections / ranks] to [batch·tokens, Σ sections]. */
export function exchangeHeads(
  tape: Tape,
  x: Variable,
  sections: readonly number[],
  batch: number,
  group: LayerGroup,
): Variable {
  const [rows, width] = matrixDims(x.value);
  const y = tape.variable([rows / group.ranks, width * group.ranks]);
  const move = new HeadExchange(tape, sections, rows / group.ranks / batch, batch, group);
  move.toTokens(x.value, y.value);
  tape.record({
    input: () => {
      const dx = tape.allocate(x.value.dims);
      move.toHeads(gradientOf(y), dx);
      tape.give(x, dx);
    },
    spent: () => [y.value, y.gradient],
  });
  return y;
}

class HeadExchange {
  readonly #tape: Tape;
  readonly #sections: readonly number[];
  readonly #tokens: number;
  readonly #batch: number;
  readonly #group: LayerGroup;
  readonly #width: number;

  constructor(
    tape: Tape,
    sections: readonly number[],
    tokens: number,
    batch: number,
    group: LayerGroup,
  ) {
    this.#tape = tape;
    this.#sections = sections;
    this.#tokens = tokens;
    this.#batch = batch;
    this.#group = group;
    this.#width = sections.reduce((a, b) => a + b, 0);
  }

  toHeads(some: Tensor, all: Tensor): void {
    const { kernels } = this.#tape;
    const { ranks } = this.#group;
    const own = this.#width / ranks;
    this.#exchange(
      (packed) => {
        this.#columns((rank, column, place, count) => {
          const to = packed + (rank * this.#rows * own + place) * 4;
          kernels.copyRows(some.pointer + column * 4, this.#width, to, own, this.#rows, count);
        });
      },
      (received) => {
        this.#samples((sample, rank) => {
          const from = received + (rank * this.#batch + sample) * this.#tokens * own * 4;
          const to = all.pointer + (sample * ranks + rank) * this.#tokens * own * 4;
          kernels.copy(from, to, this.#tokens * own);
        });
      },
    );
  }

  toTokens(all: Tensor, some: Tensor): void {
    const { kernels } = this.#tape;
    const { ranks } = this.#group;
    const own = this.#width / ranks;
    this.#exchange(
      (packed) => {
        this.#samples((sample, rank) => {
          const from = all.pointer + (sample * ranks + rank) * this.#tokens * own * 4;
          const to = packed + (rank * this.#batch + sample) * this.#tokens * own * 4;
          kernels.copy(from, to, this.#tokens * own);
        });
      },
      (received) => {
        this.#columns((rank, column, place, count) => {
          const from = received + (rank * this.#rows * own + place) * 4;
          kernels.copyRows(from, own, some.pointer + column * 4, this.#width, this.#rows, count);
        });
      },
    );
  }

  get #rows(): number {
    return this.#batch * this.#tokens;
  }

  #exchange(pack: (packed: number) => void, unpack: (received: number) => void): void {
    const { pool } = this.#tape;
    const dims = [this.#rows, this.#width];
    const [packed, received] = [pool.allocate(dims), pool.allocate(dims)];
    pack(packed.pointer);
    this.#group.allToAll(view(pool.memory, packed), view(pool.memory, received)).wait();
    unpack(received.pointer);
    pool.free(packed);
    pool.free(received);
  }

  /** For each rank and section: first column of its heads, their place among the rank's, and width. */
  #columns(visit: (rank: number, column: number, place: number, count: number) => void): void {
    const { ranks } = this.#group;
    for (let rank = 0; rank < ranks; rank++) {
      let [start, place] = [0, 0];
      for (const section of this.#sections) {
        const count = section / ranks;
        visit(rank, start + rank * count, place, count);
        start += section;
        place += count;
      }
    }
  }

  #samples(visit: (sample: number, rank: number) => void): void {
    for (let sample = 0; sample < this.#batch; sample++) {
      for (let rank = 0; rank < this.#group.ranks; rank++) visit(sample, rank);
    }
  }
}

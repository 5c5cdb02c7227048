/** The tokens that a rank works on in one step, where kernels can read them. */
import type { Pool } from "../memory/pool.ts";
import type { Range } from "../memory/slice.ts";

/** Which tokens of the global batch a rank reads. */
export interface TokenShape {
  /** Samples of the rank in one step, over all its microbatches, and the first of them. */
  readonly rows: number;
  readonly firstRow: number;
  /** Tokens of a whole sample. */
  readonly sequence: number;
  /** The tokens of each sample that this rank sees, in the order in which it keeps them. */
  readonly pieces: readonly Range[];
  /** The part of the vocabulary that the rank holds: ids are counted from its start, others are −1. */
  readonly vocab: Range;
}

export class TokenBuffers {
  readonly #pool: Pool;
  readonly #shape: TokenShape;
  /** Tokens of a sample here. */
  readonly #sequence: number;
  readonly #inputs: number;
  readonly #targets: number;

  constructor(pool: Pool, shape: TokenShape) {
    this.#pool = pool;
    this.#shape = shape;
    this.#sequence = shape.pieces.reduce((sum, { count }) => sum + count, 0);
    this.#inputs = pool.allocateBytes(shape.rows * this.#sequence * 4);
    this.#targets = pool.allocateBytes(shape.rows * this.#sequence * 4);
  }

  /** Copies the rank's tokens out of the global batch [samples, sequence + 1]. */
  load(batch: Int32Array): void {
    const { rows, firstRow, sequence, pieces, vocab } = this.#shape;
    const { buffer } = this.#pool.memory;
    const inputs = new Int32Array(buffer, this.#inputs, rows * this.#sequence);
    const targets = new Int32Array(buffer, this.#targets, rows * this.#sequence);
    const local = (token: number): number => {
      const id = token - vocab.start;
      return id >= 0 && id < vocab.count ? id : -1;
    };
    let at = 0;
    for (let row = 0; row < rows; row++) {
      for (const { start, count } of pieces) {
        const from = (firstRow + row) * (sequence + 1) + start;
        for (let i = from; i < from + count; i++, at++) {
          inputs[at] = local(batch[i]!);
          targets[at] = local(batch[i + 1]!);
        }
      }
    }
  }

  /** Pointer to i32 token ids from this row of the rank on. */
  inputs(row: number): number {
    return this.#inputs + row * this.#sequence * 4;
  }

  /** Pointer to the tokens that should come next, in the same form. */
  targets(row: number): number {
    return this.#targets + row * this.#sequence * 4;
  }
}

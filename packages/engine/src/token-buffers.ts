/** The tokens that a rank works on in one step, where kernels can read them. */
import type { Pool } from "./pool.ts";

export class TokenBuffers {
  readonly #pool: Pool;
  readonly #rows: number;
  readonly #sequence: number;
  readonly #inputs: number;
  readonly #targets: number;

  /** @param rows Samples of the rank in one step, over all its microbatches. */
  constructor(pool: Pool, rows: number, sequence: number) {
    this.#pool = pool;
    this.#rows = rows;
    this.#sequence = sequence;
    this.#inputs = pool.allocateBytes(rows * sequence * 4);
    this.#targets = pool.allocateBytes(rows * sequence * 4);
  }

  /** Copies the rank's rows, from `firstRow` on, out of the global batch [rows, sequence + 1]. */
  load(batch: Int32Array, firstRow: number): void {
    const { buffer } = this.#pool.memory;
    const sequence = this.#sequence;
    const inputs = new Int32Array(buffer, this.#inputs, this.#rows * sequence);
    const targets = new Int32Array(buffer, this.#targets, this.#rows * sequence);
    for (let row = 0; row < this.#rows; row++) {
      const from = (firstRow + row) * (sequence + 1);
      inputs.set(batch.subarray(from, from + sequence), row * sequence);
      targets.set(batch.subarray(from + 1, from + 1 + sequence), row * sequence);
    }
  }

  /** Pointer to [.., sequence] i32 token ids from this row of the rank on. */
  inputs(row: number): number {
    return this.#inputs + row * this.#sequence * 4;
  }

  /** Pointer to the tokens that should come next, in the same form. */
  targets(row: number): number {
    return this.#targets + row * this.#sequence * 4;
  }
}

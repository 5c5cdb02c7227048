/**
 * An activation of a run in BF16: computed with in float32, and kept between its uses in half the bytes.
 * Its place is where its float32 values are, written out again when it is asked for.
 */
import type { Kernels } from "../kernels/kernels.ts";
import type { Pool } from "./pool.ts";
import { type Tensor, elements } from "./tensor.ts";

/** Elements that are written out at a time where not all are needed at once. */
const partElements = 16_384;

export class RestingTensor implements Tensor {
  readonly dims: readonly number[];
  readonly size: number;
  readonly #pool: Pool;
  readonly #kernels: Kernels;
  #place: number | undefined;
  #rested: number | undefined;

  constructor(pool: Pool, kernels: Kernels, dims: readonly number[]) {
    this.#pool = pool;
    this.#kernels = kernels;
    this.dims = dims;
    this.size = elements(dims);
  }

  /** Byte offset of the float32 values, until the next rest. */
  get pointer(): number {
    if (this.#place === undefined) {
      this.#place = this.#pool.allocateBytes(this.size * 4);
      if (this.#rested !== undefined) {
        this.#kernels.fromBf16(this.#rested, this.#place, this.size);
      }
    }
    return this.#place;
  }

  /** Byte offset of the BF16 values: the float32 ones, rounded, are given back. Changes end with the first rest. */
  rest(): number {
    if (this.#rested === undefined) {
      const place = this.pointer;
      this.#rested = this.#pool.allocateBytes(this.size * 2);
      this.#kernels.toBf16(place, this.#rested, this.size);
    }
    this.#freePlace();
    return this.#rested;
  }

  /** Lends the float32 values a part after another, of whole rows, each until the next; what is changed there is lost. */
  inParts(use: (pointer: number, row: number, rows: number) => void): void {
    const width = this.dims.at(-1)!;
    const total = this.size / width;
    if (this.#place !== undefined || this.#rested === undefined) {
      use(this.pointer, 0, total);
      return;
    }
    const rows = Math.max(1, Math.floor(partElements / width));
    const part = this.#pool.allocateBytes(rows * width * 4);
    for (let row = 0; row < total; row += rows) {
      const count = Math.min(rows, total - row);
      this.#kernels.fromBf16(this.#rested + row * width * 2, part, count * width);
      use(part, row, count);
    }
    this.#pool.freeBytes(part, rows * width * 4);
  }

  /** Makes room for BF16 values that come from elsewhere. */
  receive(): number {
    this.#freePlace();
    this.#rested ??= this.#pool.allocateBytes(this.size * 2);
    return this.#rested;
  }

  /** Makes the float32 values all there are: they are about to be changed. */
  change(): void {
    void this.pointer;
    this.#freeRested();
  }

  /** Gives back both. */
  free(): void {
    this.#freePlace();
    this.#freeRested();
  }

  /** Whether there are float32 values now. */
  get isOut(): boolean {
    return this.#place !== undefined;
  }

  #freePlace(): void {
    if (this.#place !== undefined) this.#pool.freeBytes(this.#place, this.size * 4);
    this.#place = undefined;
  }

  #freeRested(): void {
    if (this.#rested !== undefined) this.#pool.freeBytes(this.#rested, this.size * 2);
    this.#rested = undefined;
  }
}

/** Has a tensor rest, if it is of those that do. */
export function restOf(tensor: Tensor | undefined): void {
  if (tensor instanceof RestingTensor && tensor.isOut) tensor.rest();
}

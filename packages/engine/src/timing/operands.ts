/** Operands of an operator that is timed, in the formats that a rank keeps them in. */
import { createRng } from "@trireme/core";
import type { Kernels } from "../kernels/kernels.ts";
import type { Gradients } from "../memory/gradient-block.ts";
import type { Pool } from "../memory/pool.ts";
import { RestingTensor } from "../memory/resting-tensor.ts";
import { type Tensor, view } from "../memory/tensor.ts";
import type { Parameter } from "../tape/tape.ts";

/** Where a case is timed. */
export interface TimingPlace {
  readonly pool: Pool;
  readonly kernels: Kernels;
  /** Whether activations and matrices are kept in BF16. */
  readonly narrow: boolean;
}

/** What a case reads: filled once, on the shapes of its operator, and given back together. */
export class Operands {
  readonly #place: TimingPlace;
  readonly #rng = createRng(1);
  readonly #tensors: Tensor[] = [];

  constructor(place: TimingPlace) {
    this.#place = place;
  }

  /** What was made first. */
  get first(): Tensor {
    return this.#tensors[0]!;
  }

  /** Gives everything back. */
  free(): void {
    for (const tensor of this.#tensors) {
      if (tensor instanceof RestingTensor) tensor.free();
      else this.#place.pool.free(tensor);
    }
  }

  /** An activation. */
  tensor(dims: readonly number[]): Tensor {
    const { pool, kernels, narrow } = this.#place;
    return this.#fill(narrow ? new RestingTensor(pool, kernels, dims) : pool.allocate(dims));
  }

  /** Numbers in float32. */
  wide(dims: readonly number[]): Tensor {
    return this.#fill(this.#place.pool.allocate(dims));
  }

  #fill(tensor: Tensor): Tensor {
    this.#tensors.push(tensor);
    const values = view(this.#place.pool.memory, tensor);
    for (let i = 0; i < values.length; i++) values[i] = this.#rng.float() - 0.5;
    return tensor;
  }

  vector(size: number): Parameter {
    const gradient = gradientsAt(this.wide([size]));
    return { name: "timed", dims: [size], value: this.wide([size]), gradient };
  }

  matrix(dims: readonly [number, number]): Parameter {
    const { kernels, narrow } = this.#place;
    const values = this.wide(dims);
    const gradient = gradientsAt(values);
    if (!narrow) return { name: "timed", dims, value: this.wide(dims), gradient };
    const { size } = values;
    const half = this.wide([Math.ceil(size / 2)]);
    kernels.toBf16(values.pointer, half.pointer, size);
    const [height, width] = dims;
    const unpackRows = (out: number, first: number, count: number): void => {
      kernels.fromBf16(half.pointer + first * width * 2, out, count * width);
    };
    const unpack = (out: number): void => unpackRows(out, 0, height);
    const packed = { turned: false, unpack, unpackRows };
    return { name: "timed", dims, value: half, gradient, packed };
  }

  /** Pointer to `count` random i32 in [0, below). */
  ids(count: number, below: number): number {
    const { pool } = this.#place;
    const tensor = pool.allocate([count]);
    this.#tensors.push(tensor);
    const ids = new Int32Array(pool.memory.buffer, tensor.pointer, count);
    for (let i = 0; i < count; i++) ids[i] = this.#rng.integer(below);
    return tensor.pointer;
  }
}

/** Gradients in float32: a profile tells no others apart. */
function gradientsAt({ pointer, size }: Tensor): Gradients {
  return { pointer, size, each: 4 };
}

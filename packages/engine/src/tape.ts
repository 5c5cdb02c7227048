/**
 * Reverse-mode differentiation over a list of executed operations. The backward of an operation has
 * two halves: the gradient of its inputs, which the previous pipeline stage waits for, and the
 * gradient of its weights, which nobody waits for. A zero-bubble schedule runs the halves at
 * different times (Qi et al., Zero Bubble Pipeline Parallelism, 2024); others run them together.
 */
import type { Kernels } from "./kernels/kernels.ts";
import type { Pool } from "./pool.ts";
import type { Tensor } from "./tensor.ts";

/** A value on the tape and the gradient of the loss by it, once a consumer has contributed. */
export interface Variable {
  readonly value: Tensor;
  /** False for inputs that nothing is trained by; their gradients are not computed. */
  readonly needsGradient: boolean;
  gradient: Tensor | undefined;
}

/** A trained tensor: consumers add to its gradient, which lives as long as the model. */
export interface Parameter {
  readonly name: string;
  readonly value: Tensor;
  readonly gradient: Tensor;
}

/** One executed operation: how to take gradients back through it. */
export interface Operation {
  /** Contributes to the gradients of the inputs; the output's gradient is complete by then. */
  readonly input?: () => void;
  /** Adds to the gradients of the parameters; comes after `input`, at any later time. */
  readonly weight?: () => void;
}

export class Tape {
  readonly kernels: Kernels;
  readonly pool: Pool;
  readonly #records: boolean;
  readonly #operations: Operation[] = [];
  readonly #owned: Tensor[] = [];

  /** @param records False for evaluation and generation, where nothing is taken back. */
  constructor(kernels: Kernels, pool: Pool, records = true) {
    this.kernels = kernels;
    this.pool = pool;
    this.#records = records;
  }

  /** A tensor that lives until `release`. */
  allocate(dims: readonly number[]): Tensor {
    const tensor = this.pool.allocate(dims);
    this.#owned.push(tensor);
    return tensor;
  }

  /** A new variable of this shape, its value not yet computed. */
  variable(dims: readonly number[], needsGradient = true): Variable {
    return { value: this.allocate(dims), needsGradient, gradient: undefined };
  }

  record(operation: Operation): void {
    if (this.#records) this.#operations.push(operation);
  }

  /** Adds to the gradient of `x` what `write` writes: in place the first time, then by a copy. */
  contribute(x: Variable, write: (pointer: number) => void): void {
    if (!x.needsGradient) return;
    if (x.gradient === undefined) {
      x.gradient = this.allocate(x.value.dims);
      write(x.gradient.pointer);
      return;
    }
    const part = this.pool.allocate(x.value.dims);
    write(part.pointer);
    this.kernels.accumulate(part.pointer, x.gradient.pointer, part.size);
    this.pool.free(part);
  }

  /** The whole backward: input and weight gradients, operation by operation. */
  backward(): void {
    for (const operation of this.#operations.toReversed()) {
      operation.input?.();
      operation.weight?.();
    }
  }

  /** The first half: gradients of the inputs only. */
  backwardInput(): void {
    for (const operation of this.#operations.toReversed()) operation.input?.();
  }

  /** The second half, after the first: gradients of the weights. */
  backwardWeight(): void {
    for (const operation of this.#operations.toReversed()) operation.weight?.();
  }

  /** Gives every tensor of the tape back to the pool. */
  release(): void {
    for (const tensor of this.#owned) this.pool.free(tensor);
    this.#owned.length = 0;
    this.#operations.length = 0;
  }
}

/** The gradient of a variable that the loss depends on; a missing one is a bug in an operation. */
export function gradientOf(x: Variable): Tensor {
  if (x.gradient === undefined)
    throw new Error(`no gradient reached a value of [${x.value.dims.join()}]`);
  return x.gradient;
}

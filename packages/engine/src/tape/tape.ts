/**
 * Reverse-mode differentiation over a list of executed operations. The backward of an operation has
 * two halves: the gradient of its inputs, which the previous pipeline stage waits for, and the
 * gradient of its weights, which nobody waits for. A zero-bubble schedule runs the halves at
 * different times (Qi et al., Zero Bubble Pipeline Parallelism, 2024); others run them together.
 */
import type { Gradients } from "../memory/gradient-block.ts";
import type { Kernels } from "../kernels/kernels.ts";
import type { PackedValues } from "../packed/packed-values.ts";
import type { Pool } from "../memory/pool.ts";
import type { Products } from "./products.ts";
import { RestingTensor, restOf } from "../memory/resting-tensor.ts";
import type { Tensor } from "../memory/tensor.ts";

/** A value on the tape and the gradient of the loss by it, once a consumer has contributed. */
export interface Variable {
  /** Read it through `Tape.valueOf` in a backward: it may have been dropped. */
  value: Tensor;
  /** False for inputs that nothing is trained by; their gradients are not computed. */
  readonly needsGradient: boolean;
  gradient: Tensor | undefined;
  /** Of a dropped value: computes it again. */
  restore?: (() => Tensor) | undefined;
  /** Weight halves of operations still to come that read the value. */
  readers?: number;
}

/**
 * A trained tensor: consumers add to its gradient. Both move where weights or gradients are sharded
 * over replicas: a backward reads the pointers when it runs, not when it is recorded.
 */
export interface Parameter {
  readonly name: string;
  /** Of this rank's part, as its values lie. */
  readonly dims: readonly number[];
  readonly value: Tensor;
  readonly gradient: Gradients;
  /** Not trained: it has no gradient to be read or added to. */
  readonly frozen?: boolean;
  /** Of a matrix in fewer bits, which has no value to be read. */
  readonly packed?: PackedValues | undefined;
}

/** One executed operation: how to take gradients back through it. */
export interface Operation {
  /** Contributes to the gradients of the inputs; the output's gradient is complete by then. */
  readonly input?: () => void;
  /** Adds to the gradients of the parameters; comes after `input`, at any later time. */
  readonly weight?: () => void;
  /** Does both halves, where nothing comes between them; left out, one after the other. */
  readonly both?: () => void;
  /** Variables of earlier operations whose values `weight` reads: kept until then. */
  readonly reads?: readonly Variable[];
  /**
   * What the operation has made and its second half does not read, its output among it: given back
   * after the first half, or when the last weight half has read it.
   */
  readonly spent?: () => readonly (Tensor | undefined)[];
  /** What it has made and its second half reads, the gradient of its output among it: given back after that. */
  readonly kept?: () => readonly (Tensor | undefined)[];
}

export class Tape {
  readonly kernels: Kernels;
  readonly pool: Pool;
  /** How products are made beyond float32. */
  readonly products: Products;
  readonly #records: boolean;
  readonly #operations: Operation[] = [];
  readonly #owned = new Set<Tensor>();
  /** Values that may be kept in fewer bits. */
  readonly #resting = new Set<RestingTensor>();
  /** How many weight halves are to read a value. */
  readonly #readers = new Map<Tensor, number>();
  /** What has been given back, but is to be read. */
  readonly #waiting = new Set<Tensor>();
  #inWeights = false;

  /** @param records False for evaluation and generation, where nothing is taken back. */
  constructor(kernels: Kernels, pool: Pool, records = true, products: Products = {}) {
    this.kernels = kernels;
    this.pool = pool;
    this.products = products;
    this.#records = records;
  }

  /** A tensor that lives until `release`. */
  allocate(dims: readonly number[]): Tensor {
    const tensor = this.pool.allocate(dims);
    this.#owned.add(tensor);
    return tensor;
  }

  /** Takes a tensor over from another tape, to be given back by this one. */
  adopt(tensor: Tensor, from: Tape): Tensor {
    if (from.#owned.delete(tensor)) this.#owned.add(tensor);
    return tensor;
  }

  /** Between operations: values are kept in the format of the run's activations until they are read again. */
  rest(): void {
    for (const tensor of this.#resting) if (tensor.isOut) tensor.rest();
  }

  /** Has a value of another tape, which this one reads, rest with its own. */
  share(value: Tensor): void {
    if (value instanceof RestingTensor) this.#resting.add(value);
  }

  /** A new variable of this shape, its value not yet computed. */
  variable(dims: readonly number[], needsGradient = true): Variable {
    return { value: this.activation(dims), needsGradient, gradient: undefined };
  }

  /** A tensor in the format of the run's activations, that lives until `release`. */
  activation(dims: readonly number[]): Tensor {
    if (this.products.storage === undefined) return this.allocate(dims);
    return this.own(new RestingTensor(this.pool, this.kernels, dims));
  }

  /** Takes over a tensor that no tape has. */
  own(tensor: RestingTensor): RestingTensor {
    this.#owned.add(tensor);
    this.#resting.add(tensor);
    return tensor;
  }

  get records(): boolean {
    return this.#records;
  }

  record(operation: Operation): void {
    if (this.#records) this.#operations.push(operation);
  }

  /**
   * Gives a tensor of this tape back before the tape ends, or as soon as no weight half is to read it;
   * others, and one given back, are left alone.
   */
  free(tensor: Tensor): void {
    if (this.#readers.has(tensor)) {
      this.#waiting.add(tensor);
      restOf(tensor);
    } else if (this.#owned.delete(tensor)) this.#giveBack(tensor);
  }

  /** Frees a value that `restore` can compute again (as a tensor of this tape) when a backward asks. */
  drop(x: Variable, restore: () => Tensor): void {
    if (!this.#records) return;
    this.free(x.value);
    x.restore = restore;
  }

  /** The value, computed again if it was dropped. */
  valueOf(x: Variable): Tensor {
    if (x.restore !== undefined) {
      const { restore, readers = 0 } = x;
      x.restore = undefined;
      x.value = restore();
      if (readers > 0) {
        this.#readers.set(x.value, readers);
        // The operation that made it has had its turn.
        if (this.#inWeights) this.#waiting.add(x.value);
      }
    }
    return x.value;
  }

  /** Adds to the gradient of `x` what `write` writes: in place the first time, then by a copy. */
  contribute(x: Variable, write: (pointer: number) => void): void {
    if (x.gradient === undefined) {
      this.add(x, write);
      return;
    }
    const part = this.pool.allocate(x.value.dims);
    write(part.pointer);
    this.kernels.accumulate(part.pointer, x.gradient.pointer, part.size);
    this.pool.free(part);
  }

  /** The same by a `write` that can add: with `keep` 1 to what is there, with 0 to nothing. */
  add(x: Variable, write: (pointer: number, keep: 0 | 1) => void): void {
    if (!x.needsGradient) return;
    const keep = x.gradient === undefined ? 0 : 1;
    x.gradient ??= this.activation(x.value.dims);
    write(x.gradient.pointer, keep);
  }

  /**
   * Contributes a whole tensor that nobody else changes from then on: it becomes the gradient, or is
   * added and given back.
   */
  give(x: Variable, gradient: Tensor): void {
    if (x.needsGradient && x.gradient === undefined) {
      x.gradient = gradient;
      return;
    }
    if (x.needsGradient) {
      this.kernels.accumulate(gradient.pointer, x.gradient!.pointer, gradient.size);
    }
    this.free(gradient);
  }

  /** Makes of the value of `x`, which nothing reads any more, its gradient: `write` is given both places. */
  turn(x: Variable, write: (pointer: number) => void): void {
    if (!x.needsGradient) return;
    if (x.gradient !== undefined) {
      this.contribute(x, write);
      return;
    }
    write(x.value.pointer);
    x.gradient = x.value;
    x.value = { pointer: 0, dims: x.value.dims, size: 0 };
  }

  /** The whole backward: input and weight gradients, operation by operation. */
  backward(): void {
    for (const operation of this.#operations.toReversed()) {
      if (operation.both === undefined) {
        operation.input?.();
        operation.weight?.();
      } else operation.both();
      this.#freeAll(operation.spent?.());
      this.#freeAll(operation.kept?.());
    }
  }

  /** The first half: gradients of the inputs only. */
  backwardInput(): void {
    for (const operation of this.#operations.toReversed()) {
      operation.input?.();
      for (const x of operation.reads ?? []) this.#hold(x);
      this.#freeAll(operation.spent?.());
      for (const tensor of operation.kept?.() ?? []) restOf(tensor);
    }
  }

  /** The second half, after the first: gradients of the weights. */
  backwardWeight(): void {
    this.#inWeights = true;
    for (const operation of this.#operations.toReversed()) {
      operation.weight?.();
      for (const x of operation.reads ?? []) this.#letGo(x);
      this.#freeAll(operation.kept?.());
    }
  }

  /** Gives every tensor of the tape back to the pool. */
  release(): void {
    for (const tensor of this.#owned) this.#giveBack(tensor);
    this.#owned.clear();
    this.#resting.clear();
    this.#readers.clear();
    this.#waiting.clear();
    this.#operations.length = 0;
  }

  #giveBack(tensor: Tensor): void {
    if (tensor instanceof RestingTensor) {
      this.#resting.delete(tensor);
      tensor.free();
    } else this.pool.free(tensor);
  }

  #freeAll(tensors: readonly (Tensor | undefined)[] = []): void {
    for (const tensor of tensors) if (tensor !== undefined) this.free(tensor);
  }

  #hold(x: Variable): void {
    x.readers = (x.readers ?? 0) + 1;
    if (x.restore === undefined) {
      this.#readers.set(x.value, (this.#readers.get(x.value) ?? 0) + 1);
    }
  }

  #letGo(x: Variable): void {
    x.readers = x.readers! - 1;
    if (x.restore !== undefined) return;
    const left = this.#readers.get(x.value)! - 1;
    if (left > 0) {
      this.#readers.set(x.value, left);
      return;
    }
    this.#readers.delete(x.value);
    if (this.#waiting.delete(x.value)) this.free(x.value);
  }
}

/** The gradient of a variable that the loss depends on; a missing one is a bug in an operation. */
export function gradientOf(x: Variable): Tensor {
  if (x.gradient === undefined)
    throw new Error(`no gradient reached a value of [${x.value.dims.join()}]`);
  return x.gradient;
}

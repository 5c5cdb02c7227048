/**
 * Arrays in a kernel memory, for the tests of kernels: seeded values, and a guard behind each array
 * that shows a write past its end.
 */
import { type Rng, createRng } from "@trireme/core";
import { expect } from "vitest";
import { type Kernels, createKernels, kernelMemoryDescriptor } from "../../src/kernels/kernels.ts";

const guard = 0x5eed_cafe;

export interface Floats {
  readonly pointer: number;
  readonly values: Float32Array;
}

export class Arena {
  readonly kernels: Kernels;
  readonly rng: Rng;
  readonly #buffer: ArrayBufferLike;
  readonly #guards: number[] = [];
  #end: number;

  /** @param start First byte used: near 4 GiB to test large offsets. */
  constructor(options: { bytes?: number; seed?: number; start?: number } = {}) {
    const { bytes = 32e6, seed = 1, start = 1024 } = options;
    const memory = new WebAssembly.Memory(kernelMemoryDescriptor(start + bytes));
    this.kernels = createKernels(memory);
    this.rng = createRng(seed);
    this.#buffer = memory.buffer;
    this.#end = start;
  }

  /** An array with the given values; its place is a multiple of 4 bytes, not of 16. */
  floats(values: ArrayLike<number>): Floats {
    const array = new Float32Array(this.#buffer, this.#take(values.length), values.length);
    array.set(values);
    return { pointer: array.byteOffset, values: array };
  }

  /** n normal deviates times `size`. */
  normal(n: number, size = 1): Floats {
    return this.floats(Float64Array.from({ length: n }, () => size * this.rng.normal()));
  }

  /** n NaNs: what a kernel must write before it is read. */
  unset(n: number): Floats {
    return this.floats(new Float32Array(n).fill(NaN));
  }

  zeros(n: number): Floats {
    return this.floats(new Float32Array(n));
  }

  integers(values: readonly number[]): { pointer: number; values: Int32Array } {
    const array = new Int32Array(this.#buffer, this.#take(values.length), values.length);
    array.set(values);
    return { pointer: array.byteOffset, values: array };
  }

  /** Working space of so many bytes, filled with NaN. */
  workspace(bytes: number): number {
    return this.unset(Math.ceil(bytes / 4)).pointer;
  }

  /** Fails when a kernel has written past the end of an array. */
  checkGuards(): void {
    const words = this.#guards.map((at) => new Uint32Array(this.#buffer, at, 1)[0]);
    expect(words).toEqual(words.map(() => guard));
  }

  #take(n: number): number {
    const pointer = this.#end;
    const end = pointer + n * 4;
    for (const at of [end, end + 4]) {
      new Uint32Array(this.#buffer, at, 1)[0] = guard;
      this.#guards.push(at);
    }
    this.#end = end + 8 + 4 * this.rng.integer(4);
    return pointer;
  }
}

/** The greatest |got - wanted|, and the greatest |wanted|, of two arrays of equal length. */
export function difference(
  got: ArrayLike<number>,
  wanted: ArrayLike<number>,
): { error: number; size: number } {
  expect(got.length).toBe(wanted.length);
  let [error, size] = [0, 0];
  for (let i = 0; i < got.length; i++) {
    const distance = Math.abs(got[i]! - wanted[i]!);
    error = Number.isNaN(distance) ? Infinity : Math.max(error, distance);
    size = Math.max(size, Math.abs(wanted[i]!));
  }
  return { error, size };
}

/** Expects |got - wanted| <= relative * max(1, |wanted|) over whole arrays. */
export function expectClose(
  got: ArrayLike<number>,
  wanted: ArrayLike<number>,
  relative: number,
): void {
  const { error, size } = difference(got, wanted);
  expect(error).toBeLessThanOrEqual(relative * Math.max(1, size));
}

/** d f / d x by central differences in float64: error about 1e-9 for smooth f near 1. */
export function numericGradient(
  f: (x: Float64Array) => number,
  at: ArrayLike<number>,
): Float64Array {
  const x = Float64Array.from(at);
  const h = 1e-5;
  return x.map((value, i) => {
    x[i] = value + h;
    const above = f(x);
    x[i] = value - h;
    const below = f(x);
    x[i] = value;
    return (above - below) / (2 * h);
  });
}

/** sum of a_i b_i in float64. */
export function dot(a: ArrayLike<number>, b: ArrayLike<number>): number {
  let sum = 0;
  for (let i = 0; i < a.length; i++) sum += a[i]! * b[i]!;
  return sum;
}

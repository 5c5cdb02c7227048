/**
 * Gradients in a flat block, in float32 or in BF16. Those in BF16 are added to in float32 and rounded
 * once, to nearest with ties to even, by each that adds: as where Megatron-LM fuses the weight gradient
 * with its accumulation into a 16-bit `main_grad`.
 */
import type { Bytes } from "@trireme/core";
import type { Kernels } from "../kernels/kernels.ts";
import type { Pool } from "./pool.ts";

/** Bytes of each: 4 in float32, 2 in BF16. */
export type GradientBytes = 2 | 4;

/** A flat block of gradients, or a part of one. */
export interface Gradients {
  /** Byte offset of the first. */
  readonly pointer: number;
  /** How many. */
  readonly size: number;
  readonly each: GradientBytes;
}

/** Where gradients are, and what computes there. */
export interface GradientPlace {
  readonly pool: Pool;
  readonly kernels: Kernels;
}

/** What holds no gradients. */
export const noGradients: Gradients = { pointer: 0, size: 0, each: 4 };

/** Elements that are written out in float32 at a time where they are only read. */
const readElements = 16_384;

/** Room for gradients, its contents not initialised. */
export function allocateGradients(pool: Pool, size: number, each: GradientBytes): Gradients {
  return { pointer: pool.allocateBytes(size * each), size, each };
}

/** Gives a block's room back. */
export function freeGradients(pool: Pool, { pointer, size, each }: Gradients): void {
  pool.freeBytes(pointer, size * each);
}

/** Gradients `start`..`start + count` of a block. */
export function gradientPart(block: Gradients, start: number, count: number): Gradients {
  return { pointer: block.pointer + start * block.each, size: count, each: block.each };
}

/** Makes zeros of a block, an even number of them. */
export function clearGradients(kernels: Kernels, block: Gradients): void {
  kernels.fill(block.pointer, 0, gradientBytes(block) / 4);
}

export function gradientBytes({ size, each }: Gradients): Bytes {
  return size * each;
}

/** The gradients as a communicator takes them. */
export function gradientElements(
  memory: WebAssembly.Memory,
  { pointer, size, each }: Gradients,
): Float32Array | Uint16Array {
  if (each === 4) return new Float32Array(memory.buffer, pointer, size);
  return new Uint16Array(memory.buffer, pointer, size);
}

/** Copies gradients into a block of the same size, rounded or written out where its format is another. */
export function copyGradients(
  { pool, kernels }: GradientPlace,
  from: Gradients,
  to: Gradients,
): void {
  if (from.each > to.each) kernels.toBf16(from.pointer, to.pointer, from.size);
  else if (from.each < to.each) kernels.fromBf16(from.pointer, to.pointer, from.size);
  else {
    const { pointer } = from;
    new Uint8Array(pool.memory.buffer).copyWithin(
      to.pointer,
      pointer,
      pointer + gradientBytes(from),
    );
  }
}

/** Lends gradients in float32 to be changed: where they lie, or written out and then rounded. */
export function changeGradients(
  { pool, kernels }: GradientPlace,
  { pointer, size, each }: Gradients,
  change: (values: number) => void,
): void {
  if (each === 4) {
    change(pointer);
    return;
  }
  const values = pool.allocate([size]);
  kernels.fromBf16(pointer, values.pointer, size);
  change(values.pointer);
  kernels.toBf16(values.pointer, pointer, size);
  pool.free(values);
}

/** Lends gradients in float32 to be read, `count` from `start` on at a time: all, or written out by parts. */
export function readGradients(
  { pool, kernels }: GradientPlace,
  { pointer, size, each }: Gradients,
  read: (values: number, start: number, count: number) => void,
): void {
  if (each === 4) {
    read(pointer, 0, size);
    return;
  }
  const values = pool.allocate([Math.min(size, readElements)]);
  for (let start = 0; start < size; start += readElements) {
    const count = Math.min(readElements, size - start);
    kernels.fromBf16(pointer + start * 2, values.pointer, count);
    read(values.pointer, start, count);
  }
  pool.free(values);
}

/** into += from, of the same size. */
export function addGradients(place: GradientPlace, from: Gradients, into: Gradients): void {
  readGradients(place, from, (values, start, count) => {
    changeGradients(place, gradientPart(into, start, count), (sums) => {
      place.kernels.accumulate(values, sums, count);
    });
  });
}

/**
 * The allocator of a rank's memory. Training repeats the same shapes for every microbatch, so freed
 * blocks wait in a list of their own size and are handed out again: from the second step on nothing
 * grows, whatever order a pipeline schedule frees its microbatches in.
 */
import { TriremeError, formatBytes } from "@trireme/core";
import { type Tensor, elements } from "./tensor.ts";

/** Blocks begin on cache lines. */
const alignment = 64;
const pageBytes = 65_536;
/** Addresses are 32 bits wide on Node 20, which has no memory64. */
const limit = 2 ** 32;

export class Pool {
  readonly memory: WebAssembly.Memory;
  readonly #free = new Map<number, number[]>();
  #end: number;
  #scratch = 0;
  #scratchBytes = 0;

  /** @param base First byte the pool may use; what lies below belongs to the kernels. */
  constructor(memory: WebAssembly.Memory, base: number) {
    this.memory = memory;
    this.#end = Math.ceil(base / alignment) * alignment;
  }

  /** Bytes ever handed out and not only lent again: the peak of the rank's memory. */
  get peak(): number {
    return this.#end;
  }

  /** A tensor whose elements are not initialised. */
  allocate(dims: readonly number[]): Tensor {
    const size = elements(dims);
    return { pointer: this.allocateBytes(size * 4), dims, size };
  }

  /** Gives a tensor's block back; the tensor must not be used afterwards. */
  free(tensor: Tensor): void {
    this.freeBytes(tensor.pointer, tensor.size * 4);
  }

  /** A block of raw bytes. */
  allocateBytes(bytes: number): number {
    const block = roundUp(Math.max(bytes, 1));
    const waiting = this.#free.get(block);
    if (waiting !== undefined && waiting.length > 0) return waiting.pop()!;
    const pointer = this.#end;
    this.#reserve(pointer + block);
    this.#end = pointer + block;
    return pointer;
  }

  freeBytes(pointer: number, bytes: number): void {
    const block = roundUp(Math.max(bytes, 1));
    const waiting = this.#free.get(block);
    if (waiting === undefined) this.#free.set(block, [pointer]);
    else waiting.push(pointer);
  }

  /** Working space for one kernel call, shared by all: its contents do not outlive the call. */
  scratch(bytes: number): number {
    if (bytes > this.#scratchBytes) {
      if (this.#scratchBytes > 0) this.freeBytes(this.#scratch, this.#scratchBytes);
      this.#scratch = this.allocateBytes(bytes);
      this.#scratchBytes = bytes;
    }
    return this.#scratch;
  }

  /** Copies `size` f32 from one pointer to another. */
  copy(from: number, to: number, size: number): void {
    new Uint8Array(this.memory.buffer).copyWithin(to, from, from + size * 4);
  }

  #reserve(end: number): void {
    const missing = end - this.memory.buffer.byteLength;
    if (missing <= 0) return;
    // Grows by an eighth at least: each growth costs a system call.
    const wanted = Math.max(missing, Math.floor(this.memory.buffer.byteLength / 8));
    for (const bytes of [wanted, missing]) {
      if (this.#grow(Math.ceil(bytes / pageBytes))) return;
    }
    throw new TriremeError(
      "RANK_MEMORY",
      `a rank needs ${formatBytes(end)}, but its memory ends at ${formatBytes(limit)}; ` +
        `use a smaller microbatch or more pipeline ranks`,
    );
  }

  #grow(pages: number): boolean {
    try {
      this.memory.grow(pages);
      return true;
    } catch {
      return false;
    }
  }
}

/**
 * The size of the block for so many bytes: whole cache lines, and of large blocks one of sixteen sizes
 * to a doubling, so that sizes that differ from step to step (rows of experts) find each other's blocks.
 */
function roundUp(bytes: number): number {
  const unit = 2 ** Math.max(0, Math.floor(Math.log2(bytes)) - 4);
  const step = Math.max(alignment, unit);
  return Math.ceil(bytes / step) * step;
}

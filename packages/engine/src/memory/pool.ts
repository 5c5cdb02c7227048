/**
 * The allocator of a rank's memory: the smallest free stretch that is large enough, and neighbouring
 * free stretches are one. Training repeats the same requests every step, and between steps only what
 * persists is there: the free stretches are the same each time, and from the second step on nothing
 * grows.
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
  /** Free stretches below the end, ascending; no two touch. */
  readonly #free: Stretch[] = [];
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
    const size = roundUp(bytes);
    let best = -1;
    for (let i = 0; i < this.#free.length; i++) {
      const { start, end } = this.#free[i]!;
      if (end - start < size) continue;
      if (best >= 0 && end - start >= this.#free[best]!.end - this.#free[best]!.start) continue;
      best = i;
    }
    if (best >= 0) {
      const stretch = this.#free[best]!;
      const { start } = stretch;
      stretch.start += size;
      if (stretch.start === stretch.end) this.#free.splice(best, 1);
      return start;
    }
    const last = this.#free.at(-1);
    const start = last?.end === this.#end ? last.start : this.#end;
    this.#reserve(start + size);
    if (start < this.#end) this.#free.pop();
    this.#end = start + size;
    return start;
  }

  freeBytes(pointer: number, bytes: number): void {
    const end = pointer + roundUp(bytes);
    let at = this.#free.length;
    while (at > 0 && this.#free[at - 1]!.start > pointer) at--;
    const [before, after] = [this.#free[at - 1], this.#free[at]];
    if (before?.end === pointer) {
      before.end = end;
      if (after?.start !== end) return;
      before.end = after.end;
      this.#free.splice(at, 1);
    } else if (after?.start === end) after.start = pointer;
    else this.#free.splice(at, 0, { start: pointer, end });
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

/** A free part of the memory, in bytes. */
interface Stretch {
  start: number;
  end: number;
}

/** Whole cache lines. */
function roundUp(bytes: number): number {
  return Math.max(1, Math.ceil(bytes / alignment)) * alignment;
}

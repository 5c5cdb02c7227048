/**
 * Working weights in BF16, rounded from masters in float32 that the optimizer moves (Micikevicius et
 * al., Mixed Precision Training, 2018, section 3.1). Replicas that share the masters out exchange the
 * rounded ones.
 */
import type { Communicator, Work } from "@trireme/collectives";
import type { Kernels } from "../kernels/kernels.ts";
import type { Pool } from "../memory/pool.ts";
import type { Tensor } from "../memory/tensor.ts";
import { over } from "./works.ts";

/** What working weights are made of. */
export interface HalfValuesOptions {
  readonly pool: Pool;
  readonly kernels: Kernels;
  readonly replicas: Communicator;
  /** Elements of the flat block. */
  readonly size: number;
}

export class HalfValues {
  readonly #options: HalfValuesOptions;
  #pointer: number | undefined;

  constructor(options: HalfValuesOptions) {
    this.#options = options;
  }

  /** Whether they are there. */
  get isOpen(): boolean {
    return this.#pointer !== undefined;
  }

  /** Makes room for them. */
  open(): void {
    this.#pointer ??= this.#options.pool.allocateBytes(this.#options.size * 2);
  }

  /** Gives the room back. */
  close(): void {
    const { pool, size } = this.#options;
    if (this.#pointer !== undefined) pool.freeBytes(this.#pointer, size * 2);
    this.#pointer = undefined;
  }

  /** Rounds masters to their place, `start` elements into the block. */
  write({ pointer, size }: Tensor, start: number): void {
    this.#options.kernels.toBf16(pointer, this.#at(start), size);
  }

  /** Where `count` of them lie, from `start` on. */
  bytes(start: number, count: number): Uint8Array {
    return new Uint8Array(this.#options.pool.memory.buffer, this.#at(start), count * 2);
  }

  /** Starts to give the other replicas the part of `count` elements from `start` on, and to take theirs. */
  exchange(start: number, count: number): Work {
    const { pool, replicas, size } = this.#options;
    if (count === size) return over;
    const { buffer } = pool.memory;
    const own = new Uint16Array(buffer, this.#at(start), count);
    return replicas.allGather(own, new Uint16Array(buffer, this.#at(0), size));
  }

  /** Writes `count` of them out in float32. */
  unpack(start: number, count: number, out: number): void {
    this.#options.kernels.fromBf16(this.#at(start), out, count);
  }

  #at(start: number): number {
    if (this.#pointer === undefined) throw new Error("working weights are sharded");
    return this.#pointer + start * 2;
  }
}

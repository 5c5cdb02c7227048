/**
 * The gradients of a bucket: whole while backwards add to them, and the own segment's, summed over the
 * replicas. With ZeRO 2 and 3 there are only those outside of a backward.
 */
import type { Work } from "@trireme/collectives";
import type { Bytes } from "@trireme/core";
import type { BucketOptions } from "./bucket-options.ts";
import {
  type GradientBytes,
  type Gradients,
  allocateGradients,
  clearGradients,
  freeGradients,
  gradientElements,
  gradientPart,
  noGradients,
  readGradients,
} from "../memory/gradient-block.ts";
import { reduceGradients } from "./gradient-reduction.ts";
import type { Range } from "../memory/slice.ts";
import { afterwards } from "./works.ts";

export class BucketGradients {
  /** Of the segment that this rank updates; none where nothing is trained. */
  readonly own: Gradients;
  readonly #options: BucketOptions;
  /** Elements of the bucket. */
  readonly #size: number;
  readonly #start: number;
  readonly #each: GradientBytes;
  #whole: Gradients | undefined;

  constructor(options: BucketOptions, size: number, { start, count }: Range) {
    const { zero, frozen, gradientBytes = 4 } = options;
    this.#options = options;
    this.#size = size;
    this.#start = start;
    this.#each = gradientBytes;
    if (frozen === true) this.own = noGradients;
    else if (zero < 2) {
      this.#whole = this.#block(size);
      this.own = gradientPart(this.#whole, start, count);
    } else this.own = this.#block(count);
  }

  /** Those that backward adds to. */
  get whole(): Gradients {
    if (this.#whole === undefined) {
      throw new Error(`${this.#options.specs[0]?.name} takes no gradients now`);
    }
    return this.#whole;
  }

  /** Clears what the last step left. */
  beginStep(): void {
    const { kernels } = this.#options;
    for (const block of new Set([this.#whole ?? this.own, this.own])) {
      clearGradients(kernels, block);
    }
  }

  /** Makes room where none is kept between steps. */
  open(): void {
    this.#whole ??= this.#block(this.#size);
  }

  /** Starts to sum over the replicas, to the whole or to the own segment. */
  reduce(): Work {
    this.open();
    return this.#sum(this.whole, false);
  }

  /**
   * Starts to sum the gradients of one backward, and adds the sum to the own segment's when the work is
   * waited for: the whole gradients are gone then (ZeRO 2 and 3).
   */
  addReduced(): Work {
    const { whole } = this;
    this.#whole = undefined;
    return afterwards(this.#sum(whole, true), () => freeGradients(this.#options.pool, whole));
  }

  #sum(whole: Gradients, adds: boolean): Work {
    const { zero, wholeSums } = this.#options;
    return reduceGradients({
      ...this.#options,
      whole,
      segment: this.own,
      start: this.#start,
      adds,
      wire: this.#wire,
      toAll: zero === 0 || wholeSums === true,
    });
  }

  /** After the reduction: frees what is no longer needed, and completes gradients that are parts. */
  settle(): void {
    const { zero, pool, partial } = this.#options;
    if (zero >= 2 && this.#whole !== undefined) {
      freeGradients(pool, this.#whole);
      this.#whole = undefined;
    }
    partial?.allReduce(gradientElements(pool.memory, this.own)).wait();
  }

  /** Sum of the squares of the own segment's, in float64. */
  get squares(): number {
    const { kernels } = this.#options;
    let sum = 0;
    readGradients(this.#options, this.own, (values, _, count) => {
      sum += kernels.sumSquares(values, count);
    });
    return sum;
  }

  /** Bytes that replicas exchange. */
  get reducedBytes(): Bytes {
    return this.#options.replicas.ranks > 1 ? this.#size * this.#wire : 0;
  }

  get #wire(): GradientBytes {
    const { reducedBytes = this.#each, replicas } = this.#options;
    return replicas.ranks > 1 ? reducedBytes : this.#each;
  }

  #block(count: number): Gradients {
    const { pool, kernels } = this.#options;
    const block = allocateGradients(pool, count, this.#each);
    clearGradients(kernels, block);
    return block;
  }
}

/** Sums of gradients over pipelines that differ: packed by group, summed, and put back. */
import type { Communicator, Work } from "@trireme/collectives";
import type { Bytes } from "@trireme/core";
import type { Bucket } from "../weights/bucket.ts";
import type { BucketOptions } from "../weights/bucket-options.ts";
import {
  type GradientBytes,
  type GradientPlace,
  type Gradients,
  allocateGradients,
  copyGradients,
  freeGradients,
  gradientElements,
  gradientPart,
} from "../memory/gradient-block.ts";
import type { Parameter } from "../tape/tape.ts";
import { afterwards } from "../weights/works.ts";
import type { PieceRun, PieceSum } from "./piece-sums.ts";

/** What the sums of a rank need. */
export interface StagedSumsOptions extends GradientPlace, Pick<BucketOptions, "reducedBytes"> {
  readonly sums: readonly PieceSum[];
  readonly groupOf: (members: readonly number[]) => Communicator;
}

/** One group's sum on this rank. */
interface GroupSum {
  readonly group: Communicator;
  readonly tensors: readonly {
    readonly parameter: Parameter;
    readonly runs: readonly PieceRun[];
  }[];
  readonly size: number;
}

export class StagedSums {
  readonly #options: StagedSumsOptions;
  readonly #sums: readonly GroupSum[];
  /** Buckets whose gradients are parts of a sum over the stage's ranks. */
  readonly #partial: readonly Bucket[];
  readonly #tensor: Communicator | undefined;

  /** @param partial Of the buckets, those whose gradients are parts of a sum over `tensor`. */
  constructor(
    options: StagedSumsOptions,
    buckets: readonly Bucket[],
    partial: readonly Bucket[],
    tensor: Communicator | undefined,
  ) {
    this.#options = options;
    this.#partial = partial;
    this.#tensor = tensor;
    const byName = new Map(
      buckets.flatMap(({ parameters }) => parameters.map((p) => [p.name, p] as const)),
    );
    this.#sums = options.sums
      .filter(({ members }) => members.length > 1)
      .map(({ members, tensors }) => ({
        group: options.groupOf(members),
        tensors: tensors.map(({ name, runs }) => ({ parameter: byName.get(name)!, runs })),
        size: tensors.flatMap(({ runs }) => runs).reduce((sum, { length }) => sum + length, 0),
      }));
  }

  /** Bytes that this rank gives to the sums. */
  get bytes(): Bytes {
    const elements = this.#sums.reduce((sum, { size }) => sum + size, 0);
    return elements * this.#each;
  }

  /** Starts to sum the gradients; they are whole when all works have been waited for. */
  reduce(): readonly Work[] {
    const { pool } = this.#options;
    const { memory } = pool;
    // A narrow stage's gradients are whole, and would be counted once for each part of a wide one's.
    for (const { gradients } of this.#partial) {
      this.#tensor?.allReduce(gradientElements(memory, gradients.own)).wait();
    }
    const packed = this.#sums.map((sum) => {
      const block = allocateGradients(pool, sum.size, this.#each);
      eachRun(sum, block, (run, there) => copyGradients(this.#options, run, there));
      return { sum, block };
    });
    return packed.map(({ sum, block }) =>
      afterwards(sum.group.allReduce(gradientElements(memory, block)), () => {
        eachRun(sum, block, (run, there) => copyGradients(this.#options, there, run));
        freeGradients(pool, block);
      }),
    );
  }

  get #each(): GradientBytes {
    return this.#options.reducedBytes ?? 4;
  }
}

/** Calls `use` with every run, in the gradients and in the block. */
function eachRun(
  { tensors }: GroupSum,
  block: Gradients,
  use: (run: Gradients, there: Gradients) => void,
): void {
  let at = 0;
  for (const { parameter, runs } of tensors) {
    const { gradient } = parameter;
    for (const { start, length } of runs) {
      use(gradientPart(gradient, start, length), gradientPart(block, at, length));
      at += length;
    }
  }
}

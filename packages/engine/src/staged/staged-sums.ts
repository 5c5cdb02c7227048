/** Sums of gradients over pipelines that differ: packed by group, summed, and put back. */
import type { Communicator, Work } from "@trireme/collectives";
import type { Bytes } from "@trireme/core";
import type { Bucket } from "../bucket.ts";
import { afterwards, allReduceBf16, allReduceFloat32 } from "../gradient-reduction.ts";
import type { Kernels } from "../kernels/kernels.ts";
import type { Pool } from "../pool.ts";
import type { Parameter } from "../tape.ts";
import { type Tensor, view } from "../tensor.ts";
import type { PieceRun, PieceSum } from "./piece-sums.ts";

/** What the sums of a rank need. */
export interface StagedSumsOptions {
  readonly pool: Pool;
  readonly kernels: Kernels;
  readonly sums: readonly PieceSum[];
  readonly groupOf: (members: readonly number[]) => Communicator;
  /** Gradients travel as BF16. */
  readonly compressed: boolean;
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
    return elements * (this.#options.compressed ? 2 : 4);
  }

  /** Starts to sum the gradients; they are whole when all works have been waited for. */
  reduce(): readonly Work[] {
    const { pool, kernels, compressed } = this.#options;
    // A narrow stage's gradients are whole, and would be counted once for each part of a wide one's.
    for (const { segment } of this.#partial) {
      this.#tensor?.allReduce(view(pool.memory, segment.gradient)).wait();
    }
    const packed = this.#sums.map((sum) => {
      const block = pool.allocate([sum.size]);
      eachRun(sum, block, (run, there, length) => pool.copy(run, there, length));
      return { sum, block };
    });
    return packed.map(({ sum, block }) => {
      const { group } = sum;
      const reduction = { pool, kernels, replicas: group, whole: block, segment: block, start: 0 };
      const work = compressed ? allReduceBf16(reduction) : allReduceFloat32(reduction);
      return afterwards(work, () => {
        eachRun(sum, block, (run, there, length) => pool.copy(there, run, length));
        pool.free(block);
      });
    });
  }
}

/** Calls `use` with the pointers of every run, in the gradients and in the block. */
function eachRun(
  { tensors }: GroupSum,
  block: Tensor,
  use: (run: number, there: number, length: number) => void,
): void {
  let there = block.pointer;
  for (const { parameter, runs } of tensors) {
    const { pointer } = parameter.gradient;
    for (const { start, length } of runs) {
      use(pointer + start * 4, there, length);
      there += length * 4;
    }
  }
}

/** What data-parallel replicas, and the two copies of a tied table, do between backward and update. */
import type { Communicator } from "@trireme/collectives";
import type { Bytes } from "@trireme/core";
import type { Kernels } from "./kernels/kernels.ts";
import type { ParameterSet } from "./parameters.ts";
import { type Tensor, view } from "./tensor.ts";

/** The ranks that hold the same parameters, or parts of the same model. */
export interface SyncGroups {
  /** Replicas of this rank's stages. */
  readonly data: Communicator;
  /** The ranks of this replica's pipeline. */
  readonly pipeline: Communicator;
  /** First and last rank of the pipeline, where both hold the tied table; on those alone. */
  readonly tied: Communicator | undefined;
}

/** The table that a tied output head shares. */
export const tiedTable = "wte.weight";

/** Sums a gradient over the ranks of a group, in place; returns the bytes of it. */
export function reduceGradient(
  memory: WebAssembly.Memory,
  gradient: Tensor,
  group: Communicator,
): Bytes {
  group.allReduce(view(memory, gradient)).wait();
  return gradient.size * 4;
}

/**
 * The Euclidean norm of the whole model's gradient: every parameter counted once, summed in double
 * precision in the order of the pipeline's ranks, so that all ranks clip by the same factor.
 */
export function gradientNorm(
  kernels: Kernels,
  parameters: ParameterSet,
  owns: (name: string) => boolean,
  pipeline: Communicator,
): number {
  let squares = 0;
  for (const { name, gradient } of parameters.list) {
    if (owns(name)) squares += kernels.sumSquares(gradient.pointer, gradient.size);
  }
  const all = new Float64Array(pipeline.ranks);
  // The communicator carries 32-bit numbers: a double travels as two of them.
  const mine = new Int32Array(Float64Array.of(squares).buffer);
  pipeline.allGather(mine, new Int32Array(all.buffer)).wait();
  return Math.sqrt(all.reduce((sum, part) => sum + part, 0));
}

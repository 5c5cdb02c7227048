import type { Communicator } from "@trireme/collectives";
import type { GradientBytes } from "../memory/gradient-block.ts";
import type { HostMemory } from "./host-place.ts";
import type { Kernels } from "../kernels/kernels.ts";
import type { ParameterSpec } from "../parameters/parameter.ts";
import type { Pool } from "../memory/pool.ts";

/** What `Bucket` is made of. */
export interface BucketOptions {
  readonly pool: Pool;
  readonly kernels: Kernels;
  readonly specs: readonly ParameterSpec[];
  readonly seed: number;
  /** The ranks that hold these tensors and see other data, this one among them. */
  readonly replicas: Communicator;
  /** ZeRO stage. */
  readonly zero: 0 | 1 | 2 | 3;
  /** Tensor-parallel ranks whose gradients are parts of a sum too; undefined where they are whole. */
  readonly partial: Communicator | undefined;
  /** Of a gradient where it is added to; default 4, float32. */
  readonly gradientBytes?: GradientBytes;
  /** Of a gradient between replicas; default as where it is added to. */
  readonly reducedBytes?: GradientBytes;
  /** Every replica gets the sum of all gradients, not of its segment alone. */
  readonly wholeSums?: boolean;
  /** Used in BF16, and updated as masters in float32. */
  readonly narrow?: boolean;
  /** Not trained: there are values alone. */
  readonly frozen?: boolean;
  /** Where moments and masters are; left out, in the rank's memory. */
  readonly host?: HostMemory | undefined;
  /** The ranks that hold other slices of the tensors that are sliced; undefined where none are. */
  readonly slices?: Communicator | undefined;
  /** Whether this rank's copy is counted in the norm and stored, among ranks that are no replicas. */
  readonly speaks: boolean;
}

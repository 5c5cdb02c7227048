import type { KernelChoice } from "@trireme/run";
import type { Operator } from "@trireme/workload";

/** What a measuring thread is given. */
export interface MeasureSeed {
  readonly operators: readonly Operator[];
  /** Seconds this thread may take in all. */
  readonly budget: number;
  /** Shared counter at which the threads meet before they begin, and how many they are. */
  readonly gate: Int32Array;
  readonly threads: number;
  readonly kernels: KernelChoice;
}

/** Median seconds of one execution, by operator key. */
export type Measured = readonly (readonly [key: string, seconds: number])[];

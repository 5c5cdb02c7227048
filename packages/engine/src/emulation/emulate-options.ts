/** What can be asked of emulation and of recording. */
import type { Trace } from "./trace.ts";

/** Which ranks are run, and what stands for the others (PrismLLM, arXiv 2605.15617). */
export interface EmulateOptions {
  /** World ranks that are run, each on a thread; at least one. */
  readonly ranks: readonly number[];
  /**
   * What the others gave in a full run, or the directory of it: losses and gradients of the ranks that
   * are run are then those of the full run. Left out, the run must `rehearse`: the others' code is run
   * through once, each alone, and messages carry nothing; what is emulated is time.
   */
  readonly trace?: Trace | string;
  /** Whether the others of a trace take as long as they did when it was recorded; default false. */
  readonly paced?: boolean;
}

/** What is kept of a run for emulations. */
export interface RecordOptions {
  /** Ranks that may be run later: only what these get is kept; left out, any. */
  readonly ranks?: readonly number[];
  /** Where it is written while the run goes on; left out, it stays in memory. */
  readonly directory?: string;
}

/** What can be asked of the embedded runtime beyond a run, and of it beyond `Runtime`. */
import type { Bytes, Seconds } from "@trireme/core";
import type { Runtime } from "@trireme/runtime";
import type { CorruptionOptions } from "./tape/corruption-watch.ts";
import type { EmulateOptions, RecordOptions } from "./emulation/emulate-options.ts";
import type { Trace } from "./emulation/trace.ts";
import type { Recovery } from "./state/recover.ts";
import type { Rehearsal } from "./stage/stage-rehearsal.ts";

/** Options of `embeddedRuntime`. */
export interface EmbeddedRuntimeOptions {
  /**
   * Longest wait of a rank for its peers, and then for a rank that does not answer when another has
   * failed; default 60 s. A rank for which no peer waits, such as one alone, may take any time: only
   * `stop` ends it.
   */
  readonly deadline?: Seconds;
  /**
   * Rehearsal: ranks sleep as long as these say instead of computing, while schedule, messages and
   * reductions are real. Losses are NaN then.
   */
  readonly rehearse?: Rehearsal;
  /** Silent data corruption: injected, and looked for. */
  readonly corruption?: CorruptionOptions;
  /**
   * Copies the state after every step into memory that outlives the rank, its own host's and a
   * peer's, for `recover`. Default false.
   */
  readonly memoryCopies?: boolean;
  /** Keeps what the ranks give each other, for `trace` or in a directory. */
  readonly record?: RecordOptions;
  /** Runs some of the ranks alone; the others' messages are replayed. */
  readonly emulate?: EmulateOptions;
}

/** What `embeddedRuntime` offers beyond `Runtime`. */
export interface EmbeddedRuntime extends Runtime {
  /**
   * Gradients of the last step before clipping, by parameter name: the mean over the global batch. In
   * an emulation NaN where no rank that is run holds them.
   */
  gradients(): Promise<ReadonlyMap<string, Float32Array>>;
  /** Bytes of each rank's memory that have been in use: its peak. */
  memory(): Promise<readonly Bytes[]>;
  /** Corruptions that the injector has done on each rank, as of the last step that ended well. */
  readonly strikes: readonly number[];
  /** Ends a rank's thread without warning, as a failing host would. */
  kill(rank: number): void;
  /**
   * After a failure, the newest state that is whole in the memories that are left, those of ranks
   * that died not among them; needs `memoryCopies`.
   */
  recover(): Recovery;
  /** What the ranks have given each other so far; needs `record`. */
  trace(): Promise<Trace>;
}

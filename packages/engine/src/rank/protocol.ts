/** What the main thread and a rank's thread say to each other: one reply to each request, in order. */
import type { SharedMemory } from "@trireme/collectives";
import type { ResolvedEngine, ResolvedRouter } from "@trireme/run";
import type { Model, Plan } from "@trireme/workload";
import type { CorruptionOptions } from "../tape/corruption-watch.ts";
import type { RecordOptions } from "../emulation/emulate-options.ts";
import type { EmulationSeed } from "../emulation/rank-turns.ts";
import type { Trace, TraceShard } from "../emulation/trace.ts";
import type { GenerateOptions } from "../stage/generate.ts";
import type { GradientPiece } from "../weights/gradient-pieces.ts";
import type { RankCopies } from "../state/memory-copies.ts";
import type { OptimizerOptions } from "../weights/optimizer.ts";
import type { RankStep } from "./rank.ts";
import type { Rehearsal } from "../stage/stage-rehearsal.ts";
import type { RankFileMemory } from "../state/snapshot-files.ts";
import type { StartGate } from "./start-gate.ts";
import type { StateFileLayout } from "../state/state-file.ts";
import type { StateTensor } from "../state/stored-state.ts";

/** What a thread needs to become a rank. */
export interface RankSeed {
  readonly model: Model;
  readonly plan: Plan;
  readonly optimizer: OptimizerOptions;
  readonly seed: number;
  readonly rank: number;
  /** Shared memory through which ranks exchange messages. */
  readonly arena: SharedMemory;
  /** Where requests wait until all ranks have them. */
  readonly gate: StartGate;
  /** Whether each rank has a core to itself, and may look out for a message before it sleeps. */
  readonly ownCore: boolean;
  /** Longest wait for a peer. */
  readonly deadline: number;
  /** Instead of computing, sleep this long. */
  readonly rehearse: Rehearsal | undefined;
  /** How experts are chosen and kept busy. */
  readonly router: ResolvedRouter | undefined;
  /** By which arithmetic. */
  readonly engine: ResolvedEngine;
  /** What is done to tensors behind the ranks' backs, and what is looked for. */
  readonly corruption: CorruptionOptions | undefined;
  /** Of each rank, whose memory has a copy of its state; undefined where no copies are kept. */
  readonly peers: Int32Array | undefined;
  /** What is kept of its messages. */
  readonly record: RecordOptions | undefined;
  /** What stands for ranks that are not run. */
  readonly emulation: EmulationSeed | undefined;
}

/** Batches are [globalBatch, sequence + 1] token ids in shared memory. */
export type Request =
  /** Steps of a rehearsal in which nobody sleeps, before the first that is looked at. */
  | { readonly kind: "warm-up"; readonly steps: number }
  | {
      readonly kind: "train";
      readonly batch: Int32Array;
      readonly update: number;
      readonly learningRate: number;
    }
  | { readonly kind: "evaluate"; readonly batch: Int32Array }
  | { readonly kind: "generate"; readonly options: GenerateOptions }
  /** The pieces of gradients that each rank speaks for; with `all`, those of others that it holds too. */
  | { readonly kind: "gradients"; readonly all: boolean }
  /** Each rank writes its file of a snapshot into the memory that is its own. */
  | { readonly kind: "snapshot"; readonly files: readonly RankFileMemory[] }
  /** The tensors of a snapshot, of which each rank takes its parts. */
  | { readonly kind: "load"; readonly state: ReadonlyMap<string, StateTensor> }
  /** What the rank's memory holds. */
  | { readonly kind: "memory" }
  /** What has been recorded of its messages. */
  | { readonly kind: "trace" };

/** A request and its number at the gate. */
export interface Turn {
  readonly turn: number;
  readonly request: Request;
}

export type Value =
  | {
      readonly kind: "ready";
      /** The rank's file of a snapshot. */
      readonly file: StateFileLayout;
      /** Of the rank's memory so far. */
      readonly bytes: number;
      readonly copies: RankCopies | undefined;
    }
  | { readonly kind: "warm-up" }
  | ({ readonly kind: "train"; readonly spans: Float64Array; readonly strikes: number } & RankStep)
  | { readonly kind: "evaluate"; readonly lossSum: number }
  | { readonly kind: "generate"; readonly tokens: Int32Array }
  | { readonly kind: "gradients"; readonly pieces: readonly GradientPiece[] }
  | { readonly kind: "snapshot" }
  | { readonly kind: "load" }
  | { readonly kind: "memory"; readonly bytes: number }
  | { readonly kind: "trace"; readonly shard: TraceShard | undefined }
  /** The assistant stands ready: where it says how far ranks are, and what it makes them do. */
  | { readonly kind: "assistant"; readonly board: SharedArrayBuffer; readonly trace: Trace }
  /** It has played a turn. */
  | { readonly kind: "assisted" };

/** `code` tells a rank's own failure from one that it heard of from a peer. */
export interface Failure {
  readonly kind: "failure";
  readonly code: string;
  readonly message: string;
}

/**
 * What carries a run out: on virtual time (the simulator), on worker threads (the engine), on GPUs.
 * The run loop is written against this interface alone.
 */
import type { Bytes, Seconds } from "@trireme/core";
import type { Batch } from "@trireme/dataloader";
import type { ResolvedRun } from "@trireme/run";
import type { Timeline } from "@trireme/timeline";
import type { SnapshotBuffer, SnapshotSize } from "./snapshot-buffer.ts";

/** Carries a run out; calls come one at a time, `start` first and `stop` last. */
export interface Runtime {
  /** False of a runtime that computes no numbers: its losses and gradient norms are NaN. */
  readonly numeric?: boolean;
  /** Brings every rank up with freshly initialised weights. */
  start(run: ResolvedRun): Promise<void>;
  /** One optimizer step over a global batch. */
  step(input: StepInput): Promise<StepResult>;
  /** The loss over a global batch; weights and optimizer stay as they are. */
  evaluate(batch: Batch): Promise<Evaluation>;
  /** Continues a prompt; left out by runtimes without weights. */
  generate?(request: GenerateRequest): Promise<Int32Array>;
  /**
   * A copy of the state; training may go on while it is written. It is taken before the promise
   * resolves, or before `Snapshot.taken` does. A runtime may put it into memory of `buffer`, which then
   * holds no other snapshot.
   */
  snapshot(buffer?: SnapshotBuffer): Promise<Snapshot>;
  /** The files that a snapshot will have, once started: what a buffer reserves. */
  snapshotSizes?(): readonly SnapshotSize[];
  /** Puts a snapshot's state in place of the present one. */
  restore(snapshot: Snapshot): Promise<void>;
  /** Takes every rank down; safe to call twice, and after a failure. */
  stop(): Promise<void>;
}

/** What a step is given. */
export interface StepInput {
  /** Counts from 0. */
  readonly step: number;
  readonly batch: Batch;
  readonly learningRate: number;
}

/** What a step comes to. */
export interface StepResult {
  readonly step: number;
  /**
   * Mean over the tokens of the global batch, in nats, before the update; NaN where the runtime
   * computes no numbers.
   */
  readonly loss: number;
  /** Tokens trained on. */
  readonly tokens: number;
  readonly seconds: Seconds;
  /** Of the whole gradient, before clipping; NaN where the runtime computes no numbers. */
  readonly gradientNorm: number;
  readonly timeline: Timeline;
}

/** A loss without an update. */
export interface Evaluation {
  /** Mean over tokens, in nats. */
  readonly loss: number;
  readonly tokens: number;
}

/** Text to generate, as tokens. */
export interface GenerateRequest {
  readonly prompt: Int32Array;
  /** Tokens to add. */
  readonly tokens: number;
  /** 0 takes the likeliest token. */
  readonly temperature: number;
  readonly seed: number;
}

/** A file of a snapshot. */
export interface SnapshotFile {
  readonly name: string;
  readonly bytes: Uint8Array;
}

/** The whole state of a run after `step` steps. */
export interface Snapshot {
  /** Steps taken, which is the next step's number. */
  readonly step: number;
  readonly files: readonly SnapshotFile[];
  /**
   * Left out where all bytes are there. Else resolves once they are: the runtime copies them while the
   * next step computes gradients, and holds its update back until they are copied (CheckFreq, FAST 2021).
   */
  readonly taken?: Promise<void>;
}

/** Where snapshots are kept; a save is complete or not there at all. */
export interface CheckpointStore {
  /** Step of the newest complete save; undefined when there is none. */
  newest(): Promise<number | undefined>;
  /** Steps of all complete saves, newest first: what there is to fall back to. Default the newest. */
  steps?(): Promise<readonly number[]>;
  /**
   * Reads a complete save.
   * @throws TriremeError "DAMAGED" where its bytes are not those that were written.
   */
  load(step: number): Promise<Snapshot>;
  /** Makes a snapshot durable; one at a time. */
  save(snapshot: Snapshot): Promise<void>;
  /** Removes the saves of later steps: what a return to `step` needs, so that none is resumed from. */
  discardAfter?(step: number): Promise<void>;
}

/** Bytes of a snapshot. */
export function snapshotBytes(snapshot: Snapshot): Bytes {
  return snapshot.files.reduce((sum, file) => sum + file.bytes.byteLength, 0);
}

/** What the run loop tells while it runs: the lines of `metrics.jsonl`, the progress of a terminal. */
import type { Bytes, Seconds } from "@trireme/core";
import type { Timeline } from "@trireme/timeline";

/** Steps are about to begin; `from` is 0 unless a checkpoint was restored. */
export interface StartEvent {
  readonly kind: "start";
  readonly from: number;
  readonly steps: number;
  /** Of a restored checkpoint: whether it was made by a run with the same fingerprint. */
  readonly sameRun?: boolean;
}

/** A step is done. */
export interface StepEvent {
  readonly kind: "step";
  /** Counts from 0. */
  readonly step: number;
  readonly loss: number;
  readonly tokens: number;
  readonly seconds: Seconds;
  readonly learningRate: number;
  readonly gradientNorm: number;
  readonly timeline: Timeline;
}

/** The validation loss after `step` steps. */
export interface EvaluateEvent {
  readonly kind: "evaluate";
  readonly step: number;
  readonly loss: number;
  readonly tokens: number;
}

/** A save after `step` steps is durable. */
export interface CheckpointEvent {
  readonly kind: "checkpoint";
  readonly step: number;
  readonly bytes: Bytes;
}

/** A complete checkpoint whose bytes are not those that were written: the one before is tried. */
export interface DamagedEvent {
  readonly kind: "damaged";
  /** Steps that it was taken after. */
  readonly step: number;
  readonly reason: string;
}

/** The guard finds a step's loss or gradient norm out of line. */
export interface SpikeEvent {
  readonly kind: "spike";
  /** Counts from 0. */
  readonly step: number;
  readonly reason: string;
}

/** The run returns to an earlier checkpoint; the batches since then are not read again. */
export interface RollbackEvent {
  readonly kind: "rollback";
  /** The step after which it went back; counts from 0. */
  readonly step: number;
  /** Steps done after the return. */
  readonly to: number;
  /** Batches skipped so far in this run, restored ones included. */
  readonly skipped: number;
  readonly reason: string;
}

/** No more steps. */
export interface StopEvent {
  readonly kind: "stop";
  /** Steps done in all, restored ones included. */
  readonly step: number;
  readonly reason: "done" | "signal";
}

export type RunEvent =
  | StartEvent
  | StepEvent
  | EvaluateEvent
  | CheckpointEvent
  | DamagedEvent
  | SpikeEvent
  | RollbackEvent
  | StopEvent;

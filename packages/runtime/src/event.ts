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

/** No more steps. */
export interface StopEvent {
  readonly kind: "stop";
  /** Steps done in all, restored ones included. */
  readonly step: number;
  readonly reason: "done" | "signal";
}

export type RunEvent = StartEvent | StepEvent | EvaluateEvent | CheckpointEvent | StopEvent;

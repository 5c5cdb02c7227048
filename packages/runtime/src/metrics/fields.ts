/** What a run's events come to as metrics: one table of names for every place that metrics go to. */
import type { RunEvent } from "../event.ts";

/** A number that a run reports, under a name that stays. */
export interface Metric {
  readonly name: MetricName;
  readonly value: number;
}

/** Names, with what they are; units are SI. */
export const metrics = {
  loss: "training loss of a step, nats per token",
  validation_loss: "validation loss, nats per token",
  gradient_norm: "norm of the whole gradient before clipping",
  learning_rate: "learning rate of a step",
  step_seconds: "time of a step",
  tokens_per_second: "tokens trained on in a second of a step",
  checkpoint_bytes: "size of the newest durable checkpoint",
} as const;

export type MetricName = keyof typeof metrics;

/** The numbers of an event; those that are not finite are left out, as none of the formats has a word for them. */
export function metricsOf(event: RunEvent): readonly Metric[] {
  return listed(event).filter(({ value }) => Number.isFinite(value));
}

function listed(event: RunEvent): readonly Metric[] {
  switch (event.kind) {
    case "step":
      return [
        { name: "loss", value: event.loss },
        { name: "gradient_norm", value: event.gradientNorm },
        { name: "learning_rate", value: event.learningRate },
        { name: "step_seconds", value: event.seconds },
        { name: "tokens_per_second", value: event.tokens / event.seconds },
      ];
    case "evaluate":
      return [{ name: "validation_loss", value: event.loss }];
    case "checkpoint":
      return [{ name: "checkpoint_bytes", value: event.bytes }];
    case "start":
    case "damaged":
    case "spike":
    case "rollback":
    case "stop":
      return [];
  }
}

/** Steps done when an event was told. */
export function stepsDone(event: RunEvent): number {
  switch (event.kind) {
    case "start":
      return event.from;
    case "step":
    case "spike":
      return event.step + 1;
    case "rollback":
      return event.to;
    case "evaluate":
    case "checkpoint":
    case "damaged":
    case "stop":
      return event.step;
  }
}

/** Counts of what happened, for formats that have counters. */
export const counters = {
  tokens: "tokens trained on",
  steps: "steps taken",
  checkpoints: "checkpoints made durable",
  damaged_checkpoints: "checkpoints passed over because their bytes were others",
  spikes: "steps whose loss or gradient norm was out of line",
  rollbacks: "returns to an earlier checkpoint",
} as const;

export type CounterName = keyof typeof counters;

/** What an event adds to which counter. */
export function countsOf(
  event: RunEvent,
): readonly { readonly name: CounterName; readonly by: number }[] {
  switch (event.kind) {
    case "step":
      return [
        { name: "tokens", by: event.tokens },
        { name: "steps", by: 1 },
      ];
    case "checkpoint":
      return [{ name: "checkpoints", by: 1 }];
    case "damaged":
      return [{ name: "damaged_checkpoints", by: 1 }];
    case "spike":
      return [{ name: "spikes", by: 1 }];
    case "rollback":
      return [{ name: "rollbacks", by: 1 }];
    case "start":
    case "evaluate":
    case "stop":
      return [];
  }
}

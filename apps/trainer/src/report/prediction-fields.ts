/** Prediction against measurement: the step, by how much it missed, and where the time went. */
import { type Seconds, formatPercent, formatSeconds } from "@trireme/core";
import type { Causes, Comparison } from "@trireme/timeline";
import type { Field } from "./fields.ts";

const causeNames: readonly (readonly [name: string, causes: readonly (keyof Causes)[]])[] = [
  ["compute", ["compute"]],
  ["communication", ["communication"]],
  ["overlap", ["overlap"]],
  ["other", ["other"]],
  ["waiting", ["startDelay", "bubble"]],
];

/** What a prediction came to. */
export interface PredictionError {
  readonly predicted: Seconds;
  /** Median of the measured steps. */
  readonly measured: Seconds;
  /** (predicted - measured) / measured. */
  readonly error: number;
  /** Of one measured step near the median against the predicted one; they add up to the difference. */
  readonly causes: Causes;
}

/** Sets a prediction against the measured steps. */
export function predictionError(
  predicted: Seconds,
  measured: Seconds,
  comparison: Comparison,
): PredictionError {
  const error = (predicted - measured) / measured;
  return { predicted, measured, error, causes: comparison.causes };
}

/** The step with its error, and the causes that make a hundredth of it or more, greatest first. */
export function predictionFields(p: PredictionError): readonly Field[] {
  const direction = p.error < 0 ? "too short" : "too long";
  const miss = `${formatPercent(Math.abs(p.error))} ${direction}`;
  const step = `${formatSeconds(p.predicted)} predicted, ${formatSeconds(p.measured)} measured (median): ${miss}`;
  const causes = causeNames
    .map(([name, parts]) => ({ name, seconds: sum(parts.map((cause) => p.causes[cause])) }))
    .filter(({ seconds }) => Math.abs(seconds) >= p.measured / 100)
    .sort((a, b) => Math.abs(b.seconds) - Math.abs(a.seconds))
    .map(({ name, seconds }) => `${name} ${signed(seconds)}`);
  const difference = causes.length === 0 ? "every part within 1 % of the step" : causes.join(", ");
  return [
    { label: "step", value: step },
    { label: "difference", value: difference },
  ];
}

function sum(seconds: readonly Seconds[]): Seconds {
  return seconds.reduce((a, b) => a + b, 0);
}

function signed(t: Seconds): string {
  return `${t < 0 ? "−" : "+"}${formatSeconds(Math.abs(t))}`;
}

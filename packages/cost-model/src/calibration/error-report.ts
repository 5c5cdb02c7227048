/** How far predictions are from measurements, by kind of operator. */
import type { Seconds } from "@trireme/core";
import type { Operator, OperatorKind } from "@trireme/workload";
import type { Measurement } from "./measurement.ts";

/** |predicted / measured − 1| over some measurements. */
export interface ErrorSummary {
  readonly n: number;
  /** NaN where n is 0, like the others. */
  readonly median: number;
  readonly p90: number;
  readonly mean: number;
}

/** Errors of one kind of operator: of what was fitted, and of what was put aside. */
export interface KindErrors {
  readonly kind: OperatorKind;
  readonly train: ErrorSummary;
  readonly test: ErrorSummary;
}

/** Errors of both parts, over all operators and by kind. */
export interface ErrorReport {
  readonly train: ErrorSummary;
  readonly test: ErrorSummary;
  readonly kinds: readonly KindErrors[];
}

/** Reports the errors of `predict`. */
export function errorReport(
  train: readonly Measurement[],
  test: readonly Measurement[],
  predict: (op: Operator) => Seconds,
): ErrorReport {
  const kinds = [...new Set([...train, ...test].map((m) => m.operator.kind))];
  return {
    train: summary(train, predict),
    test: summary(test, predict),
    kinds: kinds.map((kind) => ({
      kind,
      train: summary(
        train.filter((m) => m.operator.kind === kind),
        predict,
      ),
      test: summary(
        test.filter((m) => m.operator.kind === kind),
        predict,
      ),
    })),
  };
}

function summary(list: readonly Measurement[], predict: (op: Operator) => Seconds): ErrorSummary {
  const errors = list
    .map(({ operator, seconds }) => Math.abs(predict(operator) / seconds - 1))
    .toSorted((a, b) => a - b);
  const at = (q: number): number => errors[Math.ceil(q * errors.length) - 1] ?? Number.NaN;
  const mean = errors.reduce((a, b) => a + b, 0) / errors.length;
  return { n: errors.length, median: at(0.5), p90: at(0.9), mean };
}

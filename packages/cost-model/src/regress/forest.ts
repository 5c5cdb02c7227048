/**
 * Operator times by random forests, the regressors that Vidur (Agrawal et al., MLSys 2024, arXiv 2405.05465 §4.3) fits
 * to profiled operators: one forest for what is measured together, by the sizes of a shape, on the logarithm of the
 * time, so that errors count as fractions. A forest cannot leave the range of what it has seen: it is guarded like a
 * fitted profile.
 */
import { type Seconds, TriremeError, missingPeer } from "@trireme/core";
import type { Operator } from "@trireme/workload";
import { type CalibrationOptions, calibrationSplit, guarded } from "../calibration/calibrate.ts";
import { type ErrorReport, errorReport } from "../calibration/error-report.ts";
import type { Measurement } from "../calibration/measurement.ts";
import { type Support, supportGroup, supportOf } from "../calibration/support.ts";
import type { Pricer } from "../pricer.ts";

const { RandomForestRegression } = await import("ml-random-forest").catch(
  missingPeer("@trireme/cost-model/regress", "ml-random-forest", "2.1.0"),
);

type Forest = InstanceType<typeof RandomForestRegression>;

/** What forests are fitted from. */
export interface ForestOptions extends Pick<
  CalibrationOptions,
  "measurements" | "testShare" | "seed"
> {
  /** Trees of each forest; 50 when left out. */
  readonly trees?: number;
}

/** Fitted forests. */
export interface RegressedProfile {
  /** Errors on what was fitted and on the shapes put aside. */
  readonly report: ErrorReport;
  readonly support: Support;
  /** Time of an operator; throws TriremeError "EXTRAPOLATION" for a kind and form that was not measured. */
  readonly time: (op: Operator) => Seconds;
}

/**
 * Fits random forests to measurements (see `calibrate`), and reports their errors on shapes that they have not seen.
 * Throws TriremeError "MEASUREMENTS" like `calibrate`, and for a number of trees that is no positive integer.
 */
export function regressOperators(o: ForestOptions): RegressedProfile {
  const { trees = 50, seed = 1 } = o;
  if (!Number.isInteger(trees) || trees < 1) {
    throw new TriremeError("MEASUREMENTS", `trees ${trees} must be an integer from 1 up`);
  }
  const { train, test } = calibrationSplit(o);
  const groups = new Map<string, Measurement[]>();
  for (const m of train) {
    const name = forestName(m.operator);
    const list = groups.get(name) ?? [];
    list.push(m);
    groups.set(name, list);
  }
  const forests = new Map<string, Forest>();
  for (const [name, list] of groups) forests.set(name, grow(list, trees, seed));
  const time = (op: Operator): Seconds => {
    const forest = forests.get(forestName(op));
    if (forest === undefined) {
      throw new TriremeError(
        "EXTRAPOLATION",
        `nothing was measured of ${forestName(op)}; measured: ${[...forests.keys()].join(", ")}`,
      );
    }
    return Math.exp(forest.predict([features(op)])[0]!);
  };
  return {
    report: errorReport(
      train,
      test.filter((m) => forests.has(forestName(m.operator))),
      time,
    ),
    support: supportOf(train),
    time,
  };
}

/** Prices by forests; operators outside their support are refused with TriremeError "EXTRAPOLATION". */
export function regressedPricer(profile: RegressedProfile): Pricer {
  const known = new Map<string, Seconds>();
  return guarded(
    {
      operator(op) {
        let seconds = known.get(op.key);
        if (seconds === undefined) {
          seconds = profile.time(op);
          known.set(op.key, seconds);
        }
        return seconds;
      },
    },
    profile.support,
  );
}

/** Passes of attention take different times; those of products with the same sizes do not. */
function forestName(op: Operator): string {
  return op.kind === "attention" ? `${supportGroup(op)}/${op.pass}` : supportGroup(op);
}

function features(op: Operator): number[] {
  return [Math.log(op.flops + 1), Math.log(op.bytes + 1), ...op.shape.map((n) => Math.log(n))];
}

function grow(list: readonly Measurement[], nEstimators: number, seed: number): Forest {
  const forest = new RandomForestRegression({
    seed,
    nEstimators,
    maxFeatures: 1,
    replacement: false,
    useSampleBagging: true,
    noOOB: true,
    selectionMethod: "mean",
  });
  forest.train(
    list.map((m) => features(m.operator)),
    list.map((m) => Math.log(m.seconds)),
  );
  return forest;
}

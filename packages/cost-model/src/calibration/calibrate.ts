/** From measurements of a device to its profile, and from the profile to prices. */
import { TriremeError } from "@trireme/core";
import type { Accelerator, Precision } from "@trireme/topology";
import type { Operator } from "@trireme/workload";
import type { Characteristics } from "../characteristics.ts";
import { type Pricer, type RooflineOptions, kernelsOf, rooflinePricer } from "../pricer.ts";
import { type ErrorReport, errorReport } from "./error-report.ts";
import { fitCharacteristics } from "./least-squares.ts";
import type { Measurement } from "./measurement.ts";
import { parseMeasurements } from "./parse-measurements.ts";
import { splitByShape } from "./split.ts";
import { type Support, type Supported, supportOf, supports } from "./support.ts";

/** What a profile is fitted from. */
export interface CalibrationOptions {
  /** Text in the form of `parseMeasurements`, or what it gives. */
  readonly measurements: string | readonly Measurement[];
  /** The device that was measured: its peaks, bandwidth and multiprocessors. */
  readonly accelerator: Accelerator;
  /** Of the plans that the profile is for. */
  readonly precision: Precision;
  /** Share of the shapes that judge the fit; 0.25 when left out. */
  readonly testShare?: number;
  /** Chooses them; 1 when left out. */
  readonly seed?: number;
}

/** What a device sustains, measured: plain data that can be stored as JSON. */
export interface HardwareProfile {
  readonly accelerator: Accelerator;
  readonly precision: Precision;
  readonly characteristics: Characteristics;
  /** Errors of the fit to the train part over both parts. */
  readonly report: ErrorReport;
  readonly support: Support;
}

/** How a profile prices; `outside` says what becomes of operators that the measurements do not support. */
export interface ProfilePricerOptions extends Omit<RooflineOptions, "characteristics"> {
  /**
   * "refuse" (when left out) throws TriremeError "EXTRAPOLATION"; "extrapolate" prices them by the fit all the same.
   */
  readonly outside?: "refuse" | "extrapolate";
}

/** The least number of different shapes to fit from. */
const leastShapes = 4;

/**
 * Fitted and judged apart. Throws TriremeError "MEASUREMENTS" for too few shapes, besides what `parseMeasurements`
 * throws.
 */
export function calibrationSplit(
  o: Pick<CalibrationOptions, "measurements" | "testShare" | "seed">,
): ReturnType<typeof splitByShape> {
  const { testShare = 0.25, seed = 1 } = o;
  if (!(testShare >= 0 && testShare < 1)) {
    throw new TriremeError("MEASUREMENTS", `testShare ${testShare} must be in [0, 1)`);
  }
  const all =
    typeof o.measurements === "string" ? parseMeasurements(o.measurements) : o.measurements;
  const split = splitByShape(all, testShare, seed);
  const shapes = new Set(split.train.map((m) => m.operator.shape.join("x"))).size;
  if (shapes < leastShapes) {
    throw new TriremeError(
      "MEASUREMENTS",
      `${shapes} different shapes to fit from among ${all.length} measurements; measure at least ${leastShapes}, and ${Math.ceil(leastShapes / (1 - testShare))} for a test part`,
    );
  }
  return split;
}

/**
 * Fits what a device sustains to a user's own measurements by least squares on the relative error, on three quarters of
 * the shapes, and reports its errors on both parts. Fractions of a peak stay at most 1. What was not measured keeps its
 * architecture's number and is outside the profile's support.
 * Throws TriremeError "MEASUREMENTS" for malformed or too few measurements, "PRECISION" like `rooflinePricer`.
 */
export function calibrate(o: CalibrationOptions): HardwareProfile {
  const { accelerator, precision } = o;
  const { train, test } = calibrationSplit(o);
  const kernels = kernelsOf(accelerator, precision);
  const fitted = fitCharacteristics(kernels, train);
  const pricer = rooflinePricer(accelerator, precision, { characteristics: fitted });
  return {
    accelerator,
    precision,
    characteristics: fitted,
    report: errorReport(train, test, (op) => pricer.operator(op)),
    support: supportOf([...train, ...test]),
  };
}

/** Whether the measurements behind a profile support a prediction of `op`, and if not, why. */
export function profileSupports(
  profile: Pick<HardwareProfile, "support">,
  op: Operator,
): Supported {
  return supports(profile.support, op);
}

/** Prices by a profile: what `estimate` takes as `pricer`. */
export function profilePricer(
  profile: HardwareProfile,
  options: ProfilePricerOptions = {},
): Pricer {
  const { outside = "refuse", ...roofline } = options;
  const { accelerator, precision, characteristics } = profile;
  const pricer = rooflinePricer(accelerator, precision, { ...roofline, characteristics });
  return outside === "extrapolate" ? pricer : guarded(pricer, profile.support);
}

/** Refuses operators outside a support. */
export function guarded(pricer: Pricer, support: Support): Pricer {
  const inside = new Set<string>();
  return {
    ...pricer,
    operator(op) {
      if (!inside.has(op.key)) {
        const supported = supports(support, op);
        if (!supported.ok) {
          throw new TriremeError(
            "EXTRAPOLATION",
            `${supported.reason}; measure it, or pass outside: "extrapolate"`,
          );
        }
        inside.add(op.key);
      }
      return pricer.operator(op);
    },
  };
}

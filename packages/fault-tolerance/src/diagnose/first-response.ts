/**
 * From a signal to what follows it, by ByteRobust's rules (SOSP'25, section 4.1): what is certain
 * evicts at once, what may pass is only told, what the user's code did goes back to older code, and
 * what nobody explains stops training for aggregation or for the stop-time ladder.
 */
import type { KnownError } from "../detect/known-errors.ts";
import type { HealthVerdict } from "../detect/health-checks.ts";
import type { InspectionVerdict } from "../detect/inspections.ts";
import type { Anomaly } from "../detect/metric-anomaly.ts";
import type { TrafficSignal } from "../detect/traffic.ts";
import type { StopSymptom } from "./stop-time-ladder.ts";

export type Signal =
  | { readonly kind: "inspection"; readonly host: number; readonly verdict: InspectionVerdict }
  | { readonly kind: "health"; readonly host: number; readonly verdict: HealthVerdict }
  | { readonly kind: "keyword"; readonly host: number; readonly error: KnownError }
  | { readonly kind: "traffic"; readonly signal: TrafficSignal }
  | { readonly kind: "metric"; readonly anomaly: Anomaly }
  /** Use of tensor cores, as a share of what this job usually reaches. */
  | { readonly kind: "tensor-cores"; readonly share: number };

export type Response =
  | { readonly kind: "none" }
  /** Tell people; training goes on. */
  | { readonly kind: "alert" }
  | { readonly kind: "evict"; readonly host: number; readonly reason: string }
  /** Take the host out once its job has ended. */
  | { readonly kind: "drain"; readonly host: number }
  /** Aggregate stack traces while the processes still stand (hang), or over five rounds (slow). */
  | { readonly kind: "aggregate"; readonly why: "hang" | "slow" }
  /** Stop, and climb the ladder. */
  | { readonly kind: "stop"; readonly symptom: StopSymptom }
  /** Go back to the code that ran before. */
  | { readonly kind: "roll-back-code"; readonly reason: string };

/** Share of the usual tensor-core use below which training counts as slow. */
const lowUse = 0.5;

/** What a signal calls for. */
export function firstResponse(signal: Signal): Response {
  switch (signal.kind) {
    case "inspection": {
      const { verdict, host } = signal;
      if (verdict === "evict") return { kind: "evict", host, reason: "failed an inspection" };
      return { kind: verdict };
    }
    case "health": {
      const { verdict, host } = signal;
      if (verdict === "remove") return { kind: "evict", host, reason: "failed a health check" };
      return verdict === "drain" ? { kind: "drain", host } : { kind: "none" };
    }
    case "keyword": {
      const { error, host } = signal;
      if (error.action === "evict") return { kind: "evict", host, reason: error.reason };
      if (error.action === "fix") return { kind: "roll-back-code", reason: error.reason };
      return { kind: "stop", symptom: "crash" };
    }
    case "traffic":
      return signal.signal.kind === "zero" ? { kind: "aggregate", why: "hang" } : { kind: "alert" };
    case "metric":
      return metricResponse(signal.anomaly);
    case "tensor-cores":
      return signal.share < lowUse ? { kind: "aggregate", why: "slow" } : { kind: "none" };
  }
}

function metricResponse(anomaly: Anomaly): Response {
  switch (anomaly) {
    case "not-finite":
      return { kind: "stop", symptom: "nan" };
    // A spike may pass: whether to roll back and skip batches is the recovery's to decide.
    case "spike":
      return { kind: "alert" };
    case "none":
      return { kind: "none" };
  }
}

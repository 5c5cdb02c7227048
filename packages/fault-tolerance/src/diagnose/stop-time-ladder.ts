/**
 * ByteRobust's stop-time ladder (SOSP'25, section 4.2): while training stands still, tests of growing
 * cost until one names hosts; where none does, try again, then go back to older code, and only then
 * replay. Most transient faults end at the second try, most faults of new code at the third.
 */
import { TriremeError } from "@trireme/core";

export type StopSymptom = "crash" | "hang" | "nan";

export type StopTest =
  /** The vendor's diagnostics of every GPU (EUD); finds about 70 % of silent corruption. */
  | "gpu-diagnostics"
  | "intra-host-all-to-all"
  /** All-gather with neighbours. */
  | "inter-host-all-gather"
  /** One step of a small reference model with fixed input, compared bit by bit; for NaN. */
  | "bitwise-alignment"
  | "dual-phase-replay";

/** Restarts that are themselves tests: does the fault come again? */
export type StopRetry = "reattempt" | "roll-back";

export type StopRung = StopTest | StopRetry;

/** The rungs for a symptom, in order. */
export function stopTimeLadder(symptom: StopSymptom): readonly StopRung[] {
  return [
    "gpu-diagnostics",
    "intra-host-all-to-all",
    "inter-host-all-gather",
    ...(symptom === "nan" ? (["bitwise-alignment"] as const) : []),
    "reattempt",
    "roll-back",
    "dual-phase-replay",
  ];
}

export type StopOutcome =
  /** Hosts that a test found faulty; none where it passed. */
  | { readonly rung: StopTest; readonly faulty: readonly number[] }
  /** Whether the fault came again after a restart. */
  | { readonly rung: StopRetry; readonly recurred: boolean };

export type StopStep =
  | { readonly kind: "run"; readonly rung: StopRung }
  /** Replace the hosts and restart. */
  | { readonly kind: "evict"; readonly hosts: readonly number[]; readonly by: StopTest }
  /** Training goes on; a fault that a roll-back ended was in the code. */
  | { readonly kind: "resolved"; readonly by: StopRetry }
  /** The ladder has no more rungs: people must look. */
  | { readonly kind: "people" };

/**
 * What to do next after the outcomes so far, in the ladder's order.
 * @throws TriremeError "STOP_TIME" when an outcome is of another rung than the ladder has there.
 */
export function stopTimeStep(symptom: StopSymptom, outcomes: readonly StopOutcome[]): StopStep {
  const ladder = stopTimeLadder(symptom);
  for (const [i, outcome] of outcomes.entries()) {
    if (outcome.rung !== ladder[i]) {
      throw new TriremeError(
        "STOP_TIME",
        `outcome ${i} is of ${outcome.rung}, but the ladder for ${symptom} has ${ladder[i] ?? "no such rung"} there`,
      );
    }
    if ("faulty" in outcome) {
      if (outcome.faulty.length > 0) {
        return { kind: "evict", hosts: outcome.faulty, by: outcome.rung };
      }
    } else if (!outcome.recurred) return { kind: "resolved", by: outcome.rung };
  }
  const rung = ladder[outcomes.length];
  return rung === undefined ? { kind: "people" } : { kind: "run", rung };
}

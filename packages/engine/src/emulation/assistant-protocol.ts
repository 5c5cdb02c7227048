import type { Seconds } from "@trireme/core";
import type { RankPlans } from "../rank/build-rank.ts";
import type { StartGate } from "../rank/start-gate.ts";
import type { Trace } from "./trace.ts";

/** What the thread that stands for the ranks that are not run begins with. */
export interface AssistantSeed {
  readonly plans: RankPlans;
  /** World ranks that are run, ascending. */
  readonly live: readonly number[];
  /** What all ranks do; left out, it finds out by itself. */
  readonly trace: Trace | undefined;
  readonly gate: StartGate;
  readonly deadline: Seconds;
}

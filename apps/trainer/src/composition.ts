/** The only place where the parts of the trainer are chosen; tests choose others. */
import { availableParallelism, totalmem } from "node:os";
import type { Bytes, Seconds } from "@trireme/core";
import { estimate } from "@trireme/cost-model";
import {
  type MeasureOptions,
  type MeasuredLink,
  checkPlan,
  embeddedRuntime,
  measureLink,
  measureOperators,
} from "@trireme/engine";
import type { Runtime } from "@trireme/runtime";
import { simulateStep } from "@trireme/simulator";
import type { Operator } from "@trireme/workload";

/** What the commands are made of. */
export interface Parts {
  /** Trains. */
  runtime(): Runtime;
  /** Throws for a plan that the runtime does not carry out. */
  readonly checkPlan: typeof checkPlan;
  /** Times operators on this machine, by key. */
  measureOperators(
    operators: readonly Operator[],
    options: MeasureOptions,
  ): Promise<ReadonlyMap<string, Seconds>>;
  /** Times messages between two threads on this machine. */
  measureLink(): Promise<MeasuredLink>;
  readonly simulateStep: typeof simulateStep;
  readonly estimate: typeof estimate;
  /** Cores that this process may use. */
  cores(): number;
  /** Memory of this machine. */
  memory(): Bytes;
  /** A clock that only goes forward. */
  readonly now: () => Seconds;
}

/** The parts of the real thing. */
export const realParts: Parts = {
  runtime: () => embeddedRuntime(),
  checkPlan,
  measureLink,
  measureOperators,
  simulateStep,
  estimate,
  cores: availableParallelism,
  memory: totalmem,
  now: () => performance.now() / 1e3,
};

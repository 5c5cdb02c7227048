export { SharedCores } from "./shared-cores.ts";
export { type Collective, type Label, type Message, Program } from "./program.ts";
export { type PlayOptions, play } from "./play.ts";
export {
  type Part,
  type StageParts,
  type StepDescription,
  type SyncCosts,
  type TimedCollective,
  type Transfer,
} from "./step-description.ts";
export { stepProgram } from "./step-program.ts";
export { type Fold, type SimulateOptions, describeStep } from "./describe-step.ts";
export { type StepSimulation, simulateStep } from "./simulate-step.ts";
export {
  type SimulatedRuntime,
  type SimulatedRuntimeOptions,
  simulatedRuntime,
} from "./simulated-runtime.ts";

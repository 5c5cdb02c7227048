export {
  type CheckpointStore,
  type Evaluation,
  type GenerateRequest,
  type Runtime,
  type Snapshot,
  type SnapshotFile,
  type StepInput,
  type StepResult,
  snapshotBytes,
} from "./runtime.ts";
export { type LearningRateOptions, learningRate } from "./learning-rate.ts";
export {
  type CheckpointEvent,
  type EvaluateEvent,
  type RunEvent,
  type StartEvent,
  type StepEvent,
  type StopEvent,
} from "./event.ts";
export { type RunLoopOptions, type RunSummary, runLoop } from "./run-loop.ts";

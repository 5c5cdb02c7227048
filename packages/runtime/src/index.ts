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
export { SnapshotBuffer, type SnapshotSize } from "./snapshot-buffer.ts";
export { type LearningRateOptions, learningRate } from "./learning-rate.ts";
export {
  type CheckpointEvent,
  type DamagedEvent,
  type EvaluateEvent,
  type RollbackEvent,
  type RunEvent,
  type SpikeEvent,
  type StartEvent,
  type StepEvent,
  type StopEvent,
} from "./event.ts";
export { type RunLoopOptions, type RunSummary, runLoop } from "./run-loop.ts";
export { type GoBack, LossGuard, type LossGuardOptions, type LossVerdict } from "./loss-guard.ts";
export {
  type CheckpointStoreOptions,
  type ShardedStore,
  checkpointStore,
} from "./store/checkpoint-store.ts";
export { type CheckpointStorage, type Checksum } from "./store/storage.ts";
export { type StreamedFile, writeFiles } from "./store/write-files.ts";
export { type ShardWriter } from "./store/carry-out-save.ts";
export { type OpenCheckpoint } from "./store/open-checkpoint.ts";
export {
  type LoadedHolding,
  type PieceReader,
  type RankFilesOptions,
  heldPieces,
  rankFiles,
  readRank,
} from "./store/rank-files.ts";

export { type Dtype, dtypeBits, dtypes } from "./dtype.ts";
export { SafetensorsError, type SafetensorsErrorKind } from "./safetensors-error.ts";
export { type TensorEntry, findTensor, float32Values, int32Values } from "./tensor-entry.ts";
export {
  type PlacedTensor,
  type SafetensorsLayout,
  type TensorInfo,
  encodeSafetensors,
  layoutSafetensors,
  safetensorsHeader,
} from "./encode-safetensors.ts";
export {
  type ByteSource,
  type OpenSafetensors,
  type StreamOptions,
  openSafetensors,
  readTensorRegion,
  streamSafetensors,
  tensorChunks,
} from "./stream-safetensors.ts";
export {
  type ShardIndex,
  type ShardOptions,
  type ShardPlan,
  checkShards,
  encodeShardIndex,
  parseShardIndex,
  planShards,
} from "./shard-index.ts";
export { type Safetensors, decodeSafetensors } from "./decode-safetensors.ts";
export {
  type CheckpointFile,
  type CommitOptions,
  type CommitPhases,
  type FileOperation,
  commitPhases,
  commitPlan,
} from "./commit-plan.ts";
export {
  type CheckpointName,
  checkpointName,
  latestName,
  markerName,
  parseCheckpointName,
} from "./checkpoint-name.ts";
export { checkFileName } from "./file-name.ts";
export { type CheckpointEntry, completeCheckpoints, newestComplete } from "./newest-complete.ts";
export { type MarkedFile, type Marker, parseMarker } from "./marker.ts";
export {
  type Region,
  type RowMajor,
  copyRegion,
  flatRegions,
  intersectRegions,
  regionRuns,
} from "./region.ts";
export { type Coverage, coverage } from "./coverage.ts";
export {
  type LayoutOptions,
  type ParallelLayout,
  type RankGroup,
  defineLayout,
  layoutRanks,
} from "./parallel-layout.ts";
export {
  type GlobalTensor,
  type OptimizerStateOptions,
  type TensorPart,
  optimizerState,
} from "./global-tensor.ts";
export { type HeldPiece, type Holding, holders, placeTensors } from "./placement.ts";
export {
  type SavePlan,
  type SavePlanOptions,
  type SavedPiece,
  pieceKey,
  rankFileName,
  savePlan,
} from "./save-plan.ts";
export {
  type StoredPiece,
  type StoredTensor,
  encodeCheckpointIndex,
  indexFileName,
  parseCheckpointIndex,
} from "./checkpoint-index.ts";
export { type Assembly, type ReadPlan, type RegionCopy, readPlan } from "./read-plan.ts";
export { assemble, cutPiece, holdingBytes } from "./assemble.ts";
export { crc32 } from "./crc32.ts";
export { type Verification, verifyFiles } from "./verify-files.ts";
export { type SaveEvent, type SaveOrder } from "./save-event.ts";
export {
  type SaveMachineOptions,
  type SaveState,
  advanceSave,
  isSaveIdle,
  startSaving,
} from "./save-machine.ts";
export {
  type FailureCost,
  type SaveCost,
  availabilityPeriod,
  boundedSteps,
  checkpointEfficiency,
  dalyInterval,
  optimalInterval,
  youngInterval,
} from "./interval.ts";
export { geminiPlacement, geminiRecovery } from "./gemini.ts";
export { type BackupPeers, type PeerSeparation, backupPeers } from "./backup-peer.ts";
export {
  type CopyBuffers,
  type MemoryCopy,
  type MemoryRecovery,
  beginCopy,
  emptyBuffers,
  endCopy,
  recoverFromMemory,
} from "./memory-copy.ts";
export { type IdleNetworkOptions, type SentChunk, sendInIdleTime } from "./idle-network.ts";

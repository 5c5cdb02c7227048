export { type Dtype, dtypeBits, dtypes } from "./dtype.ts";
export { SafetensorsError, type SafetensorsErrorKind } from "./safetensors-error.ts";
export { type TensorEntry, findTensor, float32Values, int32Values } from "./tensor-entry.ts";
export { encodeSafetensors, safetensorsHeader } from "./encode-safetensors.ts";
export { type Safetensors, decodeSafetensors } from "./decode-safetensors.ts";
export {
  type CheckpointFile,
  type CommitOptions,
  type FileOperation,
  commitPlan,
} from "./commit-plan.ts";
export {
  type CheckpointName,
  checkpointName,
  latestName,
  markerName,
  parseCheckpointName,
} from "./checkpoint-name.ts";
export { type CheckpointEntry, completeCheckpoints, newestComplete } from "./newest-complete.ts";
export { type MarkedFile } from "./marker.ts";

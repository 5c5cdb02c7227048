export {
  type Adapter,
  type AdapterTarget,
  type DeltaNet,
  type Encoder,
  type Experts,
  type LatentAttention,
  type Mamba,
  type Model,
  type Window,
  adapterTargets,
  isGated,
} from "./model.ts";
export { type AdaptedMatrix, adaptedMatrices } from "./adapter.ts";
export { type EncoderOptions, type ModelOptions, defineModel } from "./define-model.ts";
export {
  type LayerForm,
  blocksOf,
  countForms,
  firstLayerOf,
  layerFormAt,
  layerForms,
} from "./layer-form.ts";
export { type Scan, type ScanWidths, isScan, scanWidths, stateSize } from "./scan-widths.ts";
export { model, modelNames } from "./presets/presets.ts";
export {
  type HuggingFaceOptions,
  modelFromHuggingFace,
} from "./huggingface/model-from-hugging-face.ts";
export { type ParameterCounts, parameters } from "./parameters.ts";
export { pipelineSchedules } from "./plan-rules.ts";
export { type PipelineStage, type Pipelines } from "./pipelines.ts";
export { type Axis, axes, expertAxes, expertReplicas, microbatches, ranks } from "./axes.ts";
export {
  type PipelineSchedule,
  type Plan,
  type PlanAxis,
  type PlanOptions,
  definePlan,
  recomputedLayers,
  vocabularyBarriers,
} from "./plan.ts";
export { bytesOf, gradientCollective, reducedBytes } from "./precision.ts";
export {
  type Stage,
  type StageParameters,
  lossVocab,
  stageCopies,
  stageParameters,
  stagedAxes,
  stages,
  stagesOnRank,
  vocabShard,
} from "./stage.ts";
export {
  type CollectiveOperator,
  type Operator,
  type OperatorKind,
  type Pass,
} from "./operator.ts";
export { type StageOperators, boundaryBytes, stageOperators } from "./stage-operators.ts";
export { elementFlops } from "./element-flops.ts";
export { type VocabularyExchange, vocabularyExchanges } from "./vocabulary.ts";
export { type FlopConvention, type FlopRule, flopConventions, modelFlops } from "./flops.ts";
export { type ExpertRows, expertRows, rankTokens } from "./expert-operators.ts";
export { replicaCollectives } from "./replica-collectives.ts";

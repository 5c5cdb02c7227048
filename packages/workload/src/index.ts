export { type Model, type ModelOptions, defineModel } from "./model.ts";
export { model, modelNames } from "./presets.ts";
export { type ParameterCounts, parameters } from "./parameters.ts";
export {
  type Plan,
  type PlanOptions,
  axes,
  bytesOf,
  definePlan,
  microbatches,
  ranks,
} from "./plan.ts";
export {
  type Stage,
  type StageParameters,
  lossVocab,
  stageParameters,
  stages,
  vocabShard,
} from "./stage.ts";
export {
  type CollectiveOperator,
  type Operator,
  type OperatorKind,
  type Pass,
} from "./operator.ts";
export { type StageOperators, boundaryBytes, stageOperators } from "./stage-operators.ts";
export { type FlopConvention, modelFlops } from "./flops.ts";

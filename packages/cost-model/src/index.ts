export { type Characteristics, characteristics } from "./characteristics.ts";
export { type Pricer, type RooflineOptions, measuredPricer, rooflinePricer } from "./pricer.ts";
export { type Interval, type PredictedKind, interval } from "./interval.ts";
export { type Communication } from "./groups.ts";
export { type PricedOperator, type StepCosts, type StepOptions, stepCosts } from "./step-costs.ts";
export { type GradientSum } from "./gradient-sums.ts";
export { type StagedBoundary, type StagedPipeline, type StagedStage } from "./staged-costs.ts";
export { type VocabularyCosts } from "./vocabulary-costs.ts";
export { type StagedStepCosts, stagedStepCosts } from "./staged-step-costs.ts";
export {
  type Makespan,
  type PipelineCosts,
  closedFormMakespan,
  pipelineCosts,
} from "./pipeline-time.ts";
export {
  type Memory,
  type MemoryOverhead,
  type RankMemory,
  gpuOverhead,
  hostOverhead,
  memory,
} from "./memory.ts";
export {
  type Breakdown,
  type Cost,
  type Estimate,
  type EstimateOptions,
  type EstimatorOptions,
  type Infeasible,
  estimate,
  estimator,
} from "./estimate.ts";
export { sustainedClock } from "./power-limit.ts";
export { stageActivations, stageWorkspace } from "./activation-memory.ts";
export { expertLoad } from "./expert-load.ts";
export { type EnergyOptions, type StepEnergy, stepEnergy } from "./energy.ts";
export { type TrainingCost, type TrainingOptions, trainingCost } from "./training-cost.ts";
export {
  type CalibrationOptions,
  type HardwareProfile,
  type ProfilePricerOptions,
  calibrate,
  profilePricer,
  profileSupports,
} from "./calibration/calibrate.ts";
export {
  type ErrorReport,
  type ErrorSummary,
  type KindErrors,
} from "./calibration/error-report.ts";
export { type Measurement } from "./calibration/measurement.ts";
export { parseMeasurements } from "./calibration/parse-measurements.ts";
export { type Support, type Supported } from "./calibration/support.ts";
export { overlapContention } from "./overlap.ts";
export { type Inference, type InferenceCost, inferenceCost } from "./inference/inference-cost.ts";
export { type InferenceMemory } from "./inference/inference-memory.ts";
export { type InferenceOptions } from "./inference/inference-options.ts";
export { type PassTime } from "./inference/forward-pass.ts";
export { type Speculation, acceptedTokens } from "./inference/speculation.ts";

export { type Characteristics, characteristics, sustainedClock } from "./characteristics.ts";
export { type Pricer, type RooflineOptions, measuredPricer, rooflinePricer } from "./pricer.ts";
export { type Interval, type PredictedKind, interval } from "./interval.ts";
export { type Communication } from "./groups.ts";
export { type PricedOperator, type StepCosts, type StepOptions, stepCosts } from "./step-costs.ts";
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
export { stageActivations, stageWorkspace } from "./activation-memory.ts";
export { type EnergyOptions, type StepEnergy, stepEnergy } from "./energy.ts";
export { type TrainingCost, type TrainingOptions, trainingCost } from "./training-cost.ts";

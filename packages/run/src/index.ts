export {
  type CheckpointSection,
  type ClusterSection,
  type CpuSection,
  type DataSection,
  type EngineSection,
  type EvaluateSection,
  type HostSection,
  type LinkSection,
  type ModelSection,
  type OptimizerSection,
  type PlanSection,
  type RunDescription,
  type SampleSection,
} from "./description.ts";
export {
  type CapacityParts,
  type Derivation,
  type Fp8Scaling,
  type KernelChoice,
  type ResolvedCheckpoint,
  type ResolvedData,
  type ResolvedEngine,
  type ResolvedEvaluate,
  type ResolvedGuard,
  type ResolvedOptimizer,
  type ResolvedRouter,
  type ResolvedRun,
  type ResolvedSample,
} from "./resolved.ts";
export { type RunCheck, type RunOptions, checkRun, defineRun } from "./resolve.ts";
export { type WholeRouter, wholeRouter } from "./router.ts";
export { type LocalHost, nominalLocalHost } from "./cluster.ts";
export { type PlanResolver } from "./plan.ts";
export { type JsonSchema, jsonSchema } from "./schema.ts";
export { type Path, type Problem, RunError, formatPath, formatProblem } from "./problem.ts";
export { type Override, applyOverrides, parseOverride } from "./override.ts";
export { type Dimension, parseQuantity } from "./quantity.ts";
export { fingerprint } from "./fingerprint.ts";

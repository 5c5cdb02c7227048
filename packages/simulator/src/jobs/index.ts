export { type Job, type JobOutcome, type JobRecord } from "./job.ts";
export { type Allocation, HostPool } from "./host-pool.ts";
export {
  type RunningJob,
  type SchedulingDecision,
  type SchedulingRules,
  schedulingPass,
} from "./scheduling-pass.ts";
export {
  type HostOutage,
  type JobsOptions,
  type JobsSimulation,
  simulateJobs,
} from "./simulate-jobs.ts";
export { type AcmeJobsOptions, acmeJobs } from "./acme-jobs.ts";
export {
  type Evaluation,
  type EvaluationOptions,
  type EvaluationSet,
  coupledEvaluation,
  decoupledEvaluation,
} from "./evaluation.ts";

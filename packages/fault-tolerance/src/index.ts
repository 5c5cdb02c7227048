export { type Anomaly, hangCulprits, metricAnomaly, outliers } from "./anomaly.ts";
export {
  type Cause,
  type FaultClass,
  acmeCauses,
  byteRobustCauses,
  failureRates,
  llama3Causes,
} from "./causes.ts";
export {
  type ControllerOptions,
  type ControllerRecord,
  type Order,
  type Report,
  RecoveryController,
} from "./controller.ts";
export {
  type ExpectedEttrOptions,
  type ProductiveSpan,
  effectiveTrainingTime,
  ettrBetween,
  exactEttr,
  expectedEttr,
  meanTimeToFailure,
  slidingEttr,
} from "./ettr.ts";
export { isSilent, phi } from "./heartbeat.ts";
export { type FailureLaw, drawCause, drawFailure } from "./law.ts";
export {
  type Participant,
  type Quorum,
  type QuorumDecision,
  type QuorumOptions,
  type RecoveryAssignment,
  assignRecovery,
  decideQuorum,
} from "./quorum.ts";
export { type StandbyOptions, standbyPool } from "./standby.ts";
export {
  type KernelTimes,
  individualScore,
  relativeScores,
  stragglerThreshold,
  stragglers,
} from "./straggler.ts";

export { type AcmeState, type AcmeJob, readAcmeTrace } from "./models/acme-trace.ts";
export {
  type AcmeCategory,
  type AverageMedian,
  type AcmeReason,
  type AcmeDetail,
  acmeReasons,
} from "./models/acme.ts";
export {
  type FaultClass,
  type CausePart,
  type Cause,
  llama3Causes,
  byteRobustCauses,
  ftHsdpCauses,
  lemonCauses,
} from "./models/causes.ts";
export { type Component, type Units, unitsOf } from "./models/component.ts";
export { flapSource, stragglerSource, corruptionSource } from "./models/degraded-sources.ts";
export { drawCause } from "./models/draw-cause.ts";
export {
  type FaultEffect,
  type Fault,
  type FaultStreamOptions,
  FaultStream,
  faultsUntil,
} from "./models/fault-stream.ts";
export {
  type FailureLaw,
  checkLaw,
  drawFailure,
  cumulativeHazard,
  inverseHazard,
} from "./models/law.ts";
export { type Lemons, drawLemons } from "./models/lemons.ts";
export { type PublishedRate, failureRates } from "./models/rates.ts";
export type { Persistence, Effect, FaultSource } from "./models/source.ts";
export { stopSources, outageSource } from "./models/stop-sources.ts";
export {
  type TraceFailureOptions,
  type TraceFailure,
  traceLaw,
  traceFailures,
} from "./models/trace-law.ts";
export { type TraceSummary, type Shares, summariseTrace } from "./models/trace-summary.ts";
export { type KeywordFinding, matchLine, KeywordWatch } from "./detect/error-keywords.ts";
export {
  type FailSlowVerdict,
  failSlowInterval,
  failSlowRounds,
  failSlowVerdict,
} from "./detect/fail-slow.ts";
export { type FlightRecord, type HangReport, analyseHang } from "./detect/flight-record.ts";
export {
  type Severity,
  type HealthCheck,
  type HealthVerdict,
  type FailedCheck,
  type EndedJob,
  healthChecks,
  healthCheckInterval,
  healthVerdict,
  attribute,
  falseAlarmShare,
} from "./detect/health-checks.ts";
export { isSilent, phi, learnedDeadline } from "./detect/heartbeat.ts";
export { type HeatMap, heatMap, slowHosts, heatMapText } from "./detect/heat-map.ts";
export {
  type InspectionArea,
  type Inspection,
  type InspectionVerdict,
  type InspectorOptions,
  inspectionIntervals,
  inspections,
  detectionTime,
  Inspector,
} from "./detect/inspections.ts";
export { type LogAction, type KnownError, knownErrors } from "./detect/known-errors.ts";
export {
  type HostEvent,
  type LemonSignal,
  type LemonSignals,
  type LemonThresholds,
  type LemonSuspect,
  lemonSignalNames,
  lemonSignals,
  lemonThresholds,
  detectLemons,
} from "./detect/lemon-detector.ts";
export { type Anomaly, metricAnomaly } from "./detect/metric-anomaly.ts";
export { type OutlierWatchOptions, outliers, OutlierWatch } from "./detect/outliers.ts";
export {
  type StackTrace,
  type StackGroup,
  type StackGroups,
  type SharedGroup,
  type OverEviction,
  aggregateStacks,
  sharedGroup,
  overEviction,
} from "./detect/stack-traces.ts";
export {
  type KernelTimes,
  stragglerThreshold,
  relativeScores,
  individualScore,
  stragglers,
} from "./detect/straggler.ts";
export { type TrafficSignal, type TrafficWatchOptions, TrafficWatch } from "./detect/traffic.ts";
export {
  type AlignedOutput,
  type Alignment,
  bitwiseAlignment,
  sameBits,
} from "./diagnose/bitwise-alignment.ts";
export {
  type ReplayOptions,
  type ReplayPlan,
  type ReplayVerdict,
  dualPhaseReplay,
  uniqueReplicas,
  replayVerdict,
} from "./diagnose/dual-phase-replay.ts";
export { type Signal, type Response, firstResponse } from "./diagnose/first-response.ts";
export {
  type LogLine,
  type LogDiagnosis,
  type LogDiagnosisOptions,
  diagnoseLog,
} from "./diagnose/log-diagnosis.ts";
export { lineTemplate, LogFilter } from "./diagnose/log-filter.ts";
export {
  type World,
  type PairwiseStep,
  type PairwiseResults,
  pairwiseStep,
} from "./diagnose/pairwise-test.ts";
export {
  type SelfCheck,
  type SelfCheckResults,
  type SelfCheckStep,
  selfChecks,
  selfCheckStep,
} from "./diagnose/self-check.ts";
export {
  type StopSymptom,
  type StopTest,
  type StopRetry,
  type StopRung,
  type StopOutcome,
  type StopStep,
  stopTimeLadder,
  stopTimeStep,
} from "./diagnose/stop-time-ladder.ts";
export {
  type BitClass,
  type FloatFormat,
  type FloatArray,
  bitClasses,
  bitRange,
  drawBit,
  bitClassOf,
  toBfloat16,
  fromBfloat16,
} from "./corruption/bits.ts";
export {
  type Outcome,
  type TrialResult,
  type TrialFault,
  type CampaignOptions,
  type CampaignCell,
  type Campaign,
  type BitWeights,
  type DetectorScore,
  runCampaign,
  instructionVulnerability,
  modelVulnerability,
  detectorScore,
} from "./corruption/campaign.ts";
export {
  type CorruptionModel,
  type Corruption,
  drawCorruption,
  applyCorruption,
} from "./corruption/corruption.ts";
export { firstNonFinite } from "./corruption/finite-guard.ts";
export {
  type CorruptionTarget,
  type CorruptionRate,
  type InjectorOptions,
  type CorruptionVisit,
  CorruptionInjector,
} from "./corruption/injector.ts";
export {
  type MatmulShape,
  type ChecksumOptions,
  type ChecksumReport,
  checkMatmul,
} from "./corruption/matmul-checksum.ts";
export {
  type CorruptionDetector,
  type CorruptionFinding,
  type CorruptionAction,
  type CorruptionPolicy,
  corruptionAction,
} from "./corruption/policy.ts";
export { type ReplayDifference, replayDifference } from "./corruption/replay.ts";
export {
  type ExpectedEttrOptions,
  meanTimeToFailure,
  expectedEttr,
  exactEttr,
} from "./metrics/expected-ettr.ts";
export { type JobTimes, jobEttr, clusterGoodput, failureLoss } from "./metrics/goodput.ts";
export {
  type ProductiveSpan,
  effectiveTrainingTime,
  ettrBetween,
  slidingEttr,
} from "./metrics/measured-ettr.ts";
export { RecoveryController } from "./recovery/controller.ts";
export type { ControllerOptions } from "./recovery/options.ts";
export type { CohortReport, Order, Report } from "./recovery/protocol.ts";
export {
  type ControllerRecord,
  type StopKind,
  decodeRecord,
  encodeRecord,
} from "./recovery/record.ts";
export {
  type Rollback,
  type RollbackInput,
  type Spike,
  type SpikePolicy,
  defaultSpikePolicy,
  planRollback,
} from "./recovery/spike.ts";
export {
  type Participant,
  type Quorum,
  type QuorumDecision,
  type QuorumOptions,
  type RecoveryAssignment,
  assignRecovery,
  decideQuorum,
  shouldCommit,
} from "./recovery/quorum.ts";
export { type StandbyOptions, standbyPool } from "./recovery/standby.ts";

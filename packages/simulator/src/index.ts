export { type ProgramNetworkOptions, programNetwork } from "./network/program-network.ts";
export { type SharedNetwork, type SharedRoute } from "./program/shared-ways.ts";
export { SharedCores } from "./program/shared-cores.ts";
export { type SharedHost } from "./program/core-pools.ts";
export { type Label } from "./program/label.ts";
export type { Collective, CollectiveRow, Message, MessageRow } from "./program/communications.ts";
export { Program } from "./program/program.ts";
export { type Jitter } from "./program/jitter.ts";
export { type Observed, type PlayOptions, type Played } from "./program/play-options.ts";
export { observedTimes, play, playInto } from "./program/play.ts";
export {
  type Recorder,
  TimelineRecorder,
  type TimelineRecorderOptions,
} from "./program/recorder.ts";
export { StreamRecorder } from "./program/stream-recorder.ts";
export { AggregateRecorder, type RankTotals } from "./program/aggregate.ts";
export {
  type AxisGroups,
  type GroupAxis,
  type RankLayout,
  rankLayout,
} from "./step/rank-layout.ts";
export { type FoldedGroups, type SimulatedRanks, fold, unfolded } from "./step/fold.ts";
export {
  type Kernel,
  type Part,
  type StageParts,
  type StepDescription,
  type SyncCosts,
  type TimedCollective,
  type Transfer,
  type Variation,
} from "./step/step-description.ts";
export { stepProgram } from "./step/step-program.ts";
export { type DescribeOptions, type PricedPlan, describeStep } from "./step/describe-step.ts";
export { type RoutedCounts, type RoutedLayer, routedByTrace } from "./step/uneven-experts.ts";
export { type DocumentLengths, packedLengths } from "./step/packed-lengths.ts";
export { type PlayableStep } from "./step/playable-step.ts";
export { type SimulateOptions, type SimulatedStep, simulatedStep } from "./step/simulated-step.ts";
export { type MemoryOverTime, memoryOverTime } from "./step/memory-over-time.ts";
export {
  type LaneLoad,
  type StepSimulation,
  type StepSummary,
  type StepTotals,
  playableStep,
  simulateStep,
  sumStep,
} from "./step/simulate-step.ts";
export { type ProgramSlice, sliceProgram } from "./slice/slice-program.ts";
export {
  type SliceOptions,
  type StepRecording,
  type StepSlice,
  recordStep,
  sliceStep,
} from "./slice/slice-step.ts";
export { type PlayPlanOptions, type PlayedPlan, type Way, playPlan } from "./network/play-plan.ts";
export { collectiveFlows, unsharedTime } from "./network/collective-flows.ts";
export { type CableChange, type TrafficFlow } from "./network/traffic.ts";
export {
  type FlowSimulation,
  type FlowSimulationOptions,
  simulateFlows,
} from "./network/flow-simulation.ts";
export {
  type CongestionControl,
  dcqcnControl,
  idealControl,
  megascaleControl,
  swiftControl,
} from "./network/congestion.ts";
export {
  type Retransmission,
  ncclRetransmission,
  retransmitTimer,
} from "./network/retransmission.ts";
export {
  type SimulatedRuntime,
  type SimulatedRuntimeOptions,
  simulatedRuntime,
} from "./simulated-runtime.ts";
export {
  type CheckpointStorage,
  type LoadedFrom,
  type SaveTimes,
  stateBytes,
} from "./run/checkpoint-storage.ts";
export {
  type SaveIntervalOptions,
  bestSaveEvery,
  meanTimeBetweenStops,
} from "./run/save-interval.ts";
export { elasticPlan, replicaHosts } from "./run/elastic-plan.ts";
export {
  type SlowHosts,
  type StepTimes,
  type StepTimesOptions,
  estimatedStepTimes,
  simulatedStepTimes,
} from "./run/step-times.ts";
export { type Startup } from "./run/startup.ts";
export { type RunFaultOptions, type Update, detectedAfter } from "./run/run-faults.ts";
export { type Drift, dailyDrift, drifts, jitterDrift } from "./run/run-pace.ts";
export { type BillOptions, type RunBill } from "./run/run-bill.ts";
export { type Recovery, type RunOptions } from "./run/run-options.ts";
export { type Outage, type OutagePhase } from "./run/outages.ts";
export { type Interruption } from "./run/interruptions.ts";
export {
  type CauseTotal,
  type RunCategory,
  type RunSimulation,
  simulateRun,
} from "./run/simulate-run.ts";
export {
  type MonteCarloOptions,
  type RunMean,
  type RunStatistics,
  simulateRuns,
} from "./run/simulate-runs.ts";
export { runTimeline, slidingRunEttr } from "./run/run-timeline.ts";
export { type HostCooling, airCooled, liquidCooled } from "./run/heat/cooling.ts";
export { type DevicePower, devicePower } from "./run/heat/device-power.ts";
export { type SteadyHeat, steadyHeat } from "./run/heat/steady-heat.ts";
export { type Activity, type DeviceHeat, type HostHeat, hostHeat } from "./run/heat/host-heat.ts";
export { coolSlots } from "./run/heat/cool-slots.ts";
export { type HeatedStep, type HeatedStepOptions, heatedStep } from "./run/heat/heated-step.ts";
export { type PowerProfile, powerProfile } from "./run/heat/power-profile.ts";
export { type HeatDriftOptions, heatDrift } from "./run/heat/heat-drift.ts";

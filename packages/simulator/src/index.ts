export { SharedCores } from "./program/shared-cores.ts";
export { type Label } from "./program/label.ts";
export { type Collective, type Message, Program } from "./program/program.ts";
export { type Jitter } from "./program/jitter.ts";
export { type PlayOptions, type Played, play, playInto } from "./program/play.ts";
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
export { type SimulateOptions, type SimulatedStep, simulatedStep } from "./step/simulated-step.ts";
export { type MemoryOverTime, memoryOverTime } from "./step/memory-over-time.ts";
export {
  type LaneLoad,
  type StepSimulation,
  type StepSummary,
  type StepTotals,
  simulateStep,
  sumStep,
} from "./step/simulate-step.ts";
export { type PlayPlanOptions, type PlayedPlan, type Way, playPlan } from "./network/play-plan.ts";
export { collectiveFlows, unsharedTime } from "./network/collective-flows.ts";
export {
  type CableChange,
  type FlowSimulation,
  type FlowSimulationOptions,
  type TrafficFlow,
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

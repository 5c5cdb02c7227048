export { type ArenaOptions, type SharedMemory, communicatorArena } from "./communicator/arena.ts";
export type { CopyBytes } from "./communicator/copy.ts";
export {
  type Communicator,
  type CommunicatorOptions,
  type Work,
  createCommunicator,
} from "./communicator/communicator.ts";
export { type Elements, type ElementType } from "./communicator/element-type.ts";
export { type Split } from "./communicator/exchanges.ts";
export { type Flight, flightRecord } from "./communicator/flight-record.ts";
export { type FlightFinding, analyseFlights } from "./communicator/flight-analysis.ts";
export { type Operation } from "./communicator/operation.ts";
export {
  type CollectivePlan,
  PlanBuilder,
  type PlanHead,
  type PlanOperation,
  chunkBytes,
} from "./plan/plan.ts";
export { type Verification, verify } from "./plan/verify.ts";
export { execute } from "./plan/execute.ts";
export { type CreatePlanOptions, createPlan, planAlgorithms } from "./plan/create-plan.ts";
export {
  type RingOptions,
  chainBroadcast,
  ringAllGather,
  ringAllReduce,
  ringReduceScatter,
} from "./plan/ring.ts";
export { type TreeNode, doubleBinaryTree, treeAllReduce } from "./plan/double-binary-tree.ts";
export {
  recursiveDoublingAllGather,
  recursiveDoublingAllReduce,
} from "./plan/recursive-doubling.ts";
export { rabenseifnerAllReduce, recursiveHalvingReduceScatter } from "./plan/rabenseifner.ts";
export {
  binomialBroadcast,
  binomialGather,
  binomialReduce,
  binomialScatter,
} from "./plan/binomial.ts";
export { bruckAllGather, bruckAllToAll, bruckRounds } from "./plan/bruck.ts";
export {
  directAllGather,
  directAllToAll,
  directReduceScatter,
  oneShotAllReduce,
  twoShotAllReduce,
} from "./plan/direct.ts";
export { pairwiseAllToAll, pairwiseAllToAllV, pairwiseReduceScatter } from "./plan/pairwise.ts";
export { type HostGrid, bcubeAllReduce, hierarchicalAllReduce } from "./plan/hierarchical.ts";
export { railAlignedAllToAll, twoDimensionalAllToAll } from "./plan/hierarchical-all-to-all.ts";
export { patAllGather, patReduceScatter } from "./plan/pat.ts";
export { nvlsAllReduce, sharpAllReduce } from "./plan/in-network.ts";
export { disseminationBarrier } from "./plan/dissemination.ts";
export {
  type CollectiveTimeOptions,
  type PricedOperation,
  collectiveTime,
} from "./cost/collective-time.ts";
export {
  type ClosedFormOptions,
  type Cost,
  closedForm,
  closedFormCost,
} from "./cost/closed-form.ts";
export {
  type Generation,
  type NcclAlgorithm,
  type NcclProtocol,
  type TunedOperation,
  type TunerProfile,
  ncclProfile,
  rcclProfile,
} from "./cost/nccl/profile.ts";
export {
  type Candidate,
  type TunerOptions,
  type TunerShape,
  tunerCandidates,
} from "./cost/nccl/tuner.ts";
export { type NcclEnvironment, ncclEnvironment } from "./cost/nccl/environment.ts";
export { type NvlsCall, nvlsTime } from "./cost/nccl/nvls.ts";
export { type ElasticFabric, elasticFabric } from "./cost/nccl/elastic-fabric.ts";
export {
  type NcclPrediction,
  type PredictionOptions,
  predictNccl,
  tunerShape,
} from "./cost/nccl/predict.ts";
export { type Extent, extentOf } from "./cost/extent.ts";
export { type Rings, ringsInside } from "./cost/rings.ts";
export {
  type GlooAlgorithm,
  type GlooProfile,
  glooAllReduceTime,
  glooCost,
  glooProfile,
} from "./cost/gloo.ts";
export {
  type ContendingCollective,
  type Contention,
  type ContentionOptions,
  type DeviceRoutes,
  contend,
  deviceRoutes,
} from "./cost/contention.ts";
export {
  type TestedOperation,
  type TestedRow,
  type TestsTableOptions,
  algorithmBandwidth,
  busBandwidth,
  busFactor,
  ncclTestsTable,
  testedBytes,
  testedSizes,
} from "./cost/nccl-tests.ts";
export {
  type GroupCreation,
  type GroupCreationOptions,
  type Store,
  groupCreation,
  stores,
} from "./cost/group-creation.ts";
export { fromBf16, toBf16 } from "./compression/bf16.ts";
export {
  type Fp8Payload,
  type QuantizeOptions,
  dequantize,
  e4m3Max,
  fromE4m3,
  quantize,
  toE4m3,
} from "./compression/fp8.ts";
export {
  reduceScatterBf16,
  reduceScatterFp8,
  unitRoundoff,
} from "./compression/compressed-reduce-scatter.ts";

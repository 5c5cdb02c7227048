export { type ArenaOptions, type SharedMemory, communicatorArena } from "./communicator/arena.ts";
export {
  type Communicator,
  type CommunicatorOptions,
  type Work,
  createCommunicator,
} from "./communicator/communicator.ts";
export { type Elements, type ElementType } from "./communicator/element-type.ts";
export { type Split } from "./communicator/exchanges.ts";
export { type Flight, flightRecord } from "./communicator/flight-record.ts";
export { type Operation } from "./communicator/operation.ts";
export { type CollectivePlan, type PlanOperation } from "./plan/plan.ts";
export { type RingOptions, ringAllGather, ringAllReduce, ringReduceScatter } from "./plan/ring.ts";
export { type TreeNode, doubleBinaryTree, treeAllReduce } from "./plan/double-binary-tree.ts";
export { type Verification, verify } from "./plan/verify.ts";
export {
  type CollectiveTimeOptions,
  type PricedOperation,
  collectiveTime,
} from "./cost/collective-time.ts";

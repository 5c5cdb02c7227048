export { type Floats, type Routing, tokensPerExpert } from "./routing.ts";
export { type RouterOptions, type Scoring, type WeightOptions, route } from "./route.ts";
export { type GroupLimit, checkGroupLimit } from "./group-limit.ts";
export { routeGradient } from "./route-gradient.ts";
export { updateSelectionBias } from "./selection-bias.ts";
export { type ExpertChoiceOptions, expertChoice } from "./expert-choice.ts";
export { type SinkhornOptions, sinkhorn, sinkhornRoute } from "./sinkhorn.ts";
export {
  type HashRouteOptions,
  type UniformRouteOptions,
  hashRoute,
  uniformRoute,
} from "./fixed-route.ts";
export { type NoisyLogits, jitterFactors, noisyLogits, spreadGradient } from "./noise.ts";
export { type SharedExpertOptions, withSharedExperts } from "./shared-experts.ts";
export { type PackedChoices, packChoices, unpackChoices } from "./replay.ts";
export { sigmoidScores, softmaxScores } from "./scores.ts";
export { type BalanceLossOptions, type LossAndGradient, balanceLoss } from "./balance-loss.ts";
export { type ZLossOptions, zLoss } from "./z-loss.ts";
export { type CapacityOptions, adaptiveCapacity, expertCapacity } from "./capacity.ts";
export { type DropOptions, type DroppedRouting, dropTokens } from "./drop-tokens.ts";
export { type DispatchOptions, type DispatchPlan, planDispatch, tokenId } from "./dispatch-plan.ts";
export {
  type DispatchConfig,
  type ReceivePlan,
  type SendPlan,
  checkDispatchConfigs,
  planReceive,
  planSend,
  receivesOf,
} from "./rank-plan.ts";
export {
  combineRows,
  combineRowsGradient,
  dispatchRows,
  dispatchRowsGradient,
  gatherRows,
} from "./dispatch-rows.ts";
export {
  type ExchangeVolume,
  exchangeRows,
  exchangeVolume,
  reverseSplits,
  splitsFromCounts,
} from "./exchange.ts";
export {
  type DispatchChoice,
  allGatherRows,
  chooseDispatch,
  localGather,
  localScatter,
  reduceScatterRows,
} from "./all-gather-plan.ts";
export {
  type TokenLayout,
  type UniqueOptions,
  type UniquePlan,
  combineUnique,
  dispatchUnique,
  planExpand,
  planUnique,
  receivedRouting,
  tokenLayout,
} from "./unique-plan.ts";
export { type HeadExchange, type HeadExchangeOptions, planHeadExchange } from "./head-exchange.ts";
export {
  type Placement,
  type PlacementOptions,
  contiguousPlacement,
  definePlacement,
  rankLoads,
} from "./placement.ts";
export { type BalanceOptions, balanceExperts } from "./balance-experts.ts";
export { LoadAverage } from "./load-average.ts";
export { type Migration, type MigrationOptions, planMigration } from "./migration.ts";
export { type CostedPlacement, type PlaceByCostOptions, placeByCost } from "./place-by-cost.ts";
export { type AssignOptions, assignReplicas } from "./assign-replicas.ts";
export { type LoadStatistics, loadStatistics } from "./load-statistics.ts";
export { type RoutingTrace, type TraceOptions, routingTrace, zipfFor } from "./routing-trace.ts";

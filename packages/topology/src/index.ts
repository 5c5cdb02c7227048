export { type Accelerator, type Precision, accelerator, emulates, peakOf } from "./accelerator.ts";
export { accelerators } from "./catalogue/accelerators.ts";
export { type Host, type HostOptions, defineHost, host } from "./host.ts";
export { nicOf, nicsOf, pairLink } from "./host-ways.ts";
export {
  type Interior,
  type Part,
  type PartKind,
  type Wire,
  defineInterior,
  linkInside,
  nearestNics,
  numaOf,
  partsOf,
} from "./interior.ts";
export { hosts } from "./catalogue/hosts.ts";
export { type CoreOptions, type CpuHostOptions, corePeak, cpuHost } from "./cpu-host.ts";
export { type Link, type LinkKind, defaultLatency, defineLink } from "./link.ts";
export {
  type Cluster,
  type ClusterOptions,
  type PoolOptions,
  defineCluster,
  hostOf,
  linkBetween,
  nicIndex,
  railOf,
} from "./cluster.ts";
export { type Pool, hostIndex } from "./pool.ts";
export {
  type DomainKind,
  type DomainOptions,
  type Domains,
  type Grouping,
  devicesIn,
  domainKinds,
  domainOf,
  domainsOf,
} from "./domains.ts";
export { type Axis, type Mesh, axisOf, coordinate, defineMesh, groupOf, rankAt } from "./mesh.ts";
export { meshFromOrder, orderOf } from "./mesh-order.ts";
export {
  type ExpertFold,
  type ExpertMesh,
  expertCoordinate,
  expertGroupOf,
  foldExperts,
} from "./expert-mesh.ts";
export {
  type LayerPiece,
  type StageOptions,
  type StagedCoordinate,
  type StagedMesh,
  type StagedStage,
  defineStagedMesh,
  layerGroups,
  stagedCoordinate,
  stagedLeaders,
  stagedTensorGroup,
} from "./staged-mesh.ts";
export { type Span, type SpanOptions, spanOf } from "./span.ts";
export { type Graph, sourceOf, targetOf } from "./fabric/graph.ts";
export {
  type Fabric,
  type Layer,
  type LinkChange,
  type LinkState,
  type Shape,
  capacities,
  capacityOf,
  latencyAlong,
  layerOf,
  linkStates,
  withLinkStates,
} from "./fabric/fabric.ts";
export { type ClosLevel, type ClosShape, leafOf, slotOf } from "./fabric/clos-shape.ts";
export {
  type ClosLevelOptions,
  type ClosOptions,
  closFabric,
  hopLatency,
  oversubscription,
} from "./fabric/clos.ts";
export { type FatTreeOptions, fatTreeFabric, singleSwitchFabric } from "./fabric/fat-tree.ts";
export { type TorusOptions, type TorusShape, torusFabric } from "./fabric/torus.ts";
export { type DragonflyOptions, type DragonflyShape, dragonflyFabric } from "./fabric/dragonfly.ts";
export { type Cable, type ExplicitOptions, explicitFabric } from "./fabric/explicit.ts";
export {
  llama3Fabric,
  megascaleFabric,
  seleneFabric,
  slingshotFabric,
} from "./fabric/published.ts";
export { bisection, cutCapacity } from "./fabric/cut.ts";
export { type NextLinks, mostLinks, nextLinks, searchedLinks } from "./routing/next-links.ts";
export { ecmpChoice, tupleHash } from "./routing/ecmp.ts";
export {
  type Flows,
  type Routes,
  type RoutingPolicy,
  routeFlows,
  routeOf,
} from "./routing/route.ts";
export {
  type Collisions,
  collisions,
  expectedCollisions,
  linkLoads,
} from "./routing/collisions.ts";
export { fairRates } from "./routing/fair-rates.ts";
export { FlowRates } from "./routing/flow-rates.ts";
export { clusterPicture } from "./picture/text.ts";
export { type SvgOptions, clusterSvg } from "./picture/svg.ts";

export { type Accelerator, type Precision, accelerator } from "./accelerator.ts";
export { accelerators } from "./catalogue/accelerators.ts";
export { type Host, host } from "./host.ts";
export { hosts } from "./catalogue/hosts.ts";
export { type CpuHostOptions, cpuHost } from "./cpu-host.ts";
export { type Link, type LinkKind, defaultLatency, defineLink } from "./link.ts";
export {
  type Cluster,
  type ClusterOptions,
  type Pool,
  type PoolOptions,
  defineCluster,
  hostIndex,
  hostOf,
  linkBetween,
} from "./cluster.ts";
export { type Axis, type Mesh, axisOf, coordinate, defineMesh, groupOf, rankAt } from "./mesh.ts";
export { type Graph, sourceOf, targetOf } from "./fabric/graph.ts";
export {
  type Fabric,
  type Layer,
  type LinkChange,
  type LinkState,
  type Shape,
  capacities,
  capacityOf,
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
export { FlowRates } from "./routing/flow-rates.ts";

export { FormatError } from "./format-error.ts";
export { type HostList, expandHostList } from "./host-list.ts";
export { type Relation, type TopoMatrix, parseNvidiaSmiTopo } from "./nvidia-smi-topo.ts";
export { type TopoHostOptions, hostFromTopo } from "./topo-host.ts";
export { type NcclElement, parseNcclXml } from "./nccl-xml.ts";
export { type NcclHostOptions, hostFromNcclXml } from "./nccl-host.ts";
export {
  type SlurmFabricOptions,
  type SlurmSwitch,
  type SlurmTopology,
  parseSlurmTopology,
  slurmFabric,
} from "./slurm-topology.ts";
export { type SlurmNode, parseSlurmNodes } from "./slurm-nodes.ts";
export { type KubernetesOptions, parseKubernetesNodes } from "./kubernetes-nodes.ts";
export {
  type InventoryCluster,
  type InventoryClusterOptions,
  type InventoryHost,
  clusterFromInventory,
} from "./inventory.ts";
export {
  type AstraBlock,
  type AstraDimension,
  type AstraNetwork,
  parseAstraLogical,
  parseAstraNetwork,
  printAstraLogical,
  printAstraNetwork,
} from "./astra-sim.ts";
export { astraFabric, astraNetworkOf } from "./astra-fabric.ts";

export {
  type ChakraNode,
  type ChakraTrace,
  type ChakraValue,
  chakraCollectives,
  chakraNodeTypes,
  decodeChakra,
  encodeChakra,
} from "./execution-trace.ts";
export { type AstraSimInputs, astraSimInputs } from "./astra-sim.ts";
export type { UniformNetwork } from "./communication.ts";
export { type ChakraWorkload, toChakra } from "./export.ts";
export { type GraphNode, type WorkloadGraph, workloadGraph } from "./graph.ts";
export { type PlayWorkloadOptions, type PlayedWorkload, playWorkload } from "./play-workload.ts";
export {
  type TextLayer,
  type TextPass,
  type TextWorkload,
  parseTextWorkload,
  printTextWorkload,
} from "./text-workload.ts";
export { type PlayedText, playText } from "./play-text.ts";
export { type TextWorkloadOptions, toTextWorkload } from "./to-text.ts";

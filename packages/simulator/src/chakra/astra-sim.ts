/** What ASTRA-sim 2 is given beside the execution traces, for its analytical network. */
import type { UniformNetwork } from "./communication.ts";
import type { ChakraWorkload } from "./export.ts";

/** Contents of files by the option of ASTRA-sim that names them. */
export interface AstraSimInputs {
  readonly "comm-group-configuration": string;
  readonly "network-configuration": string;
  readonly "system-configuration": string;
  readonly "remote-memory-configuration": string;
}

/**
 * Inputs under which ASTRA-sim takes what `playWorkload` takes with `network` and `communications: 1`:
 * a way of its own between any two ranks, rings and direct exchanges in one piece, and nothing for
 * adding up or for passing from device to network. The traces go beside them as
 * `<workload-configuration>.<rank>.et`, the bytes of `encodeChakra`.
 */
export function astraSimInputs(workload: ChakraWorkload, network: UniformNetwork): AstraSimInputs {
  const system = {
    "scheduling-policy": "FIFO",
    "endpoint-delay": 1,
    "active-chunks-per-dimension": 1,
    "preferred-dataset-splits": 1,
    "all-reduce-implementation": ["ring"],
    "all-gather-implementation": ["ring"],
    "reduce-scatter-implementation": ["ring"],
    "all-to-all-implementation": ["direct"],
    "collective-optimization": "baseline",
    "local-reduction-delay": 0,
    "local-mem-bw": 1e9,
    "boost-mode": 0,
    "roofline-enabled": 0,
  };
  return {
    "comm-group-configuration": JSON.stringify(workload.groups),
    "network-configuration": [
      "topology: [ FullyConnected ]",
      `npus_count: [ ${workload.traces.length} ]`,
      // What ASTRA-sim calls a GB is 2^30 bytes.
      `bandwidth: [ ${decimal(network.bandwidth / 2 ** 30)} ]`,
      `latency: [ ${decimal(network.latency * 1e9)} ]`,
      "",
    ].join("\n"),
    "system-configuration": JSON.stringify(system, undefined, 2),
    "remote-memory-configuration": JSON.stringify({ "memory-type": "NO_MEMORY_EXPANSION" }),
  };
}

/** Digits that a reader of floating-point numbers takes for one. */
function decimal(value: number): string {
  return Number.isInteger(value) ? value.toFixed(1) : String(value);
}

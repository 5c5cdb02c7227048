/**
 * The time of a collective among devices of a cluster, alone on it. GPUs: what NCCL (RCCL on AMD)
 * would choose and take, see `nccl/predict.ts`. Other devices: the cheapest closed form on the
 * cluster's links.
 */
import { type Bytes, type Seconds, TriremeError } from "@trireme/core";
import { type Cluster, linkBetween } from "@trireme/topology";
import { closedForm } from "./closed-form.ts";
import { type Extent, extentOf, outside } from "./extent.ts";
import {
  launchLatency,
  messagePayload,
  networkPayload,
  predictNccl,
  tunerShape,
} from "./nccl/predict.ts";
import type { NcclEnvironment } from "./nccl/environment.ts";
import { ncclEnvironment } from "./nccl/environment.ts";
import { wiredBus, wiredExchangeBus } from "./wired-bus.ts";

/** Operations that can be priced. */
export type PricedOperation =
  | "all-reduce"
  | "all-gather"
  | "reduce-scatter"
  | "broadcast"
  | "reduce"
  | "all-to-all"
  | "send";

/** Options of `collectiveTime`. */
export interface CollectiveTimeOptions {
  readonly operation: PricedOperation;
  /** The full buffer, as nccl-tests counts: an all-gather's output, a reduce-scatter's input. */
  readonly bytes: Bytes;
  readonly cluster: Cluster;
  /** Devices that take part; for a send the two ends. */
  readonly ranks: readonly number[];
  /** Only this algorithm. */
  readonly algorithm?: "ring" | "tree";
  /** `NCCL_ALGO` and `NCCL_PROTO`, parsed by `ncclEnvironment`; GPUs only. */
  readonly environment?: NcclEnvironment;
  /**
   * Whether calls follow each other without a wait between them, as in nccl-tests: on GPUs their
   * launches then hide behind the calls before. Default false.
   */
  readonly queued?: boolean;
  /**
   * Devices that one host thread launches on, one after the other, as `nccl-tests -g` counts them; GPUs only, of
   * operations that NCCL's tuner knows. Default 1, a process for each device.
   */
  readonly devicesPerThread?: number;
}

const only: Readonly<Record<"ring" | "tree", NcclEnvironment>> = {
  ring: ncclEnvironment({ NCCL_ALGO: "ring" }),
  tree: ncclEnvironment({ NCCL_ALGO: "allreduce:tree" }),
};

/** Seconds of one collective; 0 for one rank. Throws `BYTES` or `DEVICES` on bad input. */
export function collectiveTime(options: CollectiveTimeOptions): Seconds {
  const { operation, bytes, cluster, ranks, algorithm } = options;
  if (!(bytes >= 0 && bytes < Infinity)) {
    throw new TriremeError("BYTES", `bytes ${bytes} must be a number of at least 0`);
  }
  const { devicesPerThread = 1 } = options;
  if (!(Number.isSafeInteger(devicesPerThread) && devicesPerThread >= 1)) {
    throw new TriremeError(
      "DEVICES",
      `devicesPerThread ${devicesPerThread} must be a whole number of at least 1`,
    );
  }
  const extent = extentOf(cluster, ranks);
  if (extent.ranks === 1) return 0;
  const gpu = extent.host.accelerator.kind === "gpu";
  const launch = gpu && options.queued !== true ? launchLatency : 0;
  switch (operation) {
    case "send": {
      if (ranks.length !== 2) {
        throw new TriremeError("DEVICES", `a send has 2 ends, but ${ranks.length} devices came`);
      }
      const link = linkBetween(cluster, ranks[0]!, ranks[1]!);
      const payload = messagePayload(link.kind, extent.host.accelerator.architecture);
      return launch + link.latency + bytes / (payload * link.bandwidth);
    }
    case "all-to-all":
      return launch + allToAllTime(bytes, extent, gpu);
    default: {
      if (gpu) {
        const environment = algorithm === undefined ? options.environment : only[algorithm];
        return predictNccl(operation, bytes, extent, {
          ...(environment !== undefined && { environment }),
          ...(options.queued !== undefined && { queued: options.queued }),
          ...(options.devicesPerThread !== undefined && {
            devicesPerThread: options.devicesPerThread,
          }),
        }).time;
      }
      return linkTime(operation, bytes, extent, algorithm);
    }
  }
}

/**
 * Each rank sends 1/n of its buffer to every rank at once, inside its host and out of it. What stays
 * goes through the same channels on GPUs: nccl-tests shows (n - 1) / n of the bus, not all of it.
 */
function allToAllTime(bytes: Bytes, extent: Extent, gpu: boolean): Seconds {
  const { ranks, hosts, most, link, network } = extent;
  const bus = gpu ? tunerShape(extent).busInside : wiredExchangeBus(extent);
  const inside = ((gpu ? most : most - 1) / ranks) * (bytes / bus);
  if (hosts === 1) return link.latency + inside;
  const payload = gpu ? networkPayload : 1;
  const across = ((ranks - most) / ranks) * (bytes / (payload * network.bandwidth));
  return network.latency + Math.max(inside, across);
}

/** The cheapest closed form on links. */
function linkTime(
  operation: Exclude<PricedOperation, "send" | "all-to-all">,
  bytes: Bytes,
  extent: Extent,
  algorithm: "ring" | "tree" | undefined,
): Seconds {
  const { ranks, hosts, link, network } = extent;
  // A rank's own pace: its share of the ports where the ring leaves the host.
  const inside = wiredBus(extent);
  const bandwidth = hosts === 1 ? inside : Math.min(inside, outside(extent));
  const between = hosts === 1 ? link.latency : network.latency;
  const ringLatency = ((ranks - hosts) * link.latency + (hosts > 1 ? hosts : 0) * between) / ranks;
  const ring = closedForm(operation, "ring", {
    ranks,
    bytes,
    alpha: ringLatency,
    beta: 1 / bandwidth,
  });
  if (algorithm === "ring" || operation === "all-gather" || operation === "reduce-scatter") {
    return ring;
  }
  const tree = closedForm(operation, operation === "all-reduce" ? "tree" : "binomial", {
    ranks,
    bytes,
    alpha: between,
    beta: 1 / bandwidth,
  });
  // Both trees of an all-reduce go through a rank's own ports, which send no less than a ring's.
  const least = operation === "all-reduce" ? (2 * (ranks - 1) * bytes) / ranks / bandwidth : 0;
  const trees = Math.max(tree, least);
  return algorithm === "tree" ? trees : Math.min(ring, trees);
}

/** How long the communication of a Chakra workload takes: on a cluster, or on ways that are all alike. */
import { type PricedOperation, closedForm, collectiveTime } from "@trireme/collectives";
import { type Bytes, type BytesPerSecond, type Seconds, TriremeError } from "@trireme/core";
import type { Cluster } from "@trireme/topology";
import type { chakraCollectives } from "./execution-trace.ts";

/** A collective by its name in `chakraCollectives`. */
export type ChakraCollective = keyof typeof chakraCollectives;

/**
 * A way of its own between any two ranks, all alike, as ASTRA-sim's analytical network without
 * congestion has them. Sums and gathers go round in a ring, exchanges directly; a broadcast takes what
 * its node says.
 */
export interface UniformNetwork {
  readonly bandwidth: BytesPerSecond;
  readonly latency: Seconds;
}

/** Times of communication; undefined where a node's own duration counts. */
export interface CommunicationTimes {
  send(from: number, to: number, bytes: Bytes): Seconds;
  /** `bytes` is the full buffer. */
  collective(kind: ChakraCollective, ranks: readonly number[], bytes: Bytes): Seconds | undefined;
}

/** What NCCL, or the cheapest algorithm where there is none, takes on a cluster. */
export function clusterTimes(cluster: Cluster): CommunicationTimes {
  return {
    send: (from, to, bytes) =>
      collectiveTime({ operation: "send", bytes, cluster, ranks: [from, to] }),
    collective: (kind, ranks, bytes) => {
      // A barrier is an all-reduce of next to nothing.
      const operation: PricedOperation = kind === "barrier" ? "all-reduce" : kind;
      return collectiveTime({ operation, bytes: kind === "barrier" ? 4 : bytes, cluster, ranks });
    },
  };
}

/** Closed forms on ways that are all alike. Throws TriremeError "NETWORK" for ways that carry nothing. */
export function uniformTimes({ bandwidth, latency }: UniformNetwork): CommunicationTimes {
  if (!(bandwidth > 0 && bandwidth < Infinity && latency >= 0 && latency < Infinity)) {
    throw new TriremeError(
      "NETWORK",
      `ways of ${bandwidth} B/s and ${latency} s: give a bandwidth above 0 and a latency from 0 up`,
    );
  }
  const ways = { alpha: latency, beta: 1 / bandwidth };
  return {
    send: (_from, _to, bytes) => latency + bytes / bandwidth,
    collective: (kind, ranks, bytes) => {
      const count = ranks.length;
      switch (kind) {
        case "broadcast":
          return undefined;
        case "barrier":
          return closedForm("barrier", "dissemination", { ...ways, ranks: count, bytes: 0 });
        case "all-to-all":
          // Every part has a way of its own.
          return count === 1 ? 0 : latency + bytes / count / bandwidth;
        default:
          return closedForm(kind, "ring", { ...ways, ranks: count, bytes });
      }
    },
  };
}

/**
 * Which devices talk to each other: rank = device, tensor parallelism between neighbours, then context,
 * data and pipeline (the order of `axes`). The group of rank 0 stands for all: the mesh repeats.
 */
import type { Bytes, Seconds } from "@trireme/core";
import { collectiveTime } from "@trireme/collectives";
import type { Cluster } from "@trireme/topology";
import type { Plan } from "@trireme/workload";

/** Prices the communication of one plan on one cluster; equal requests are computed once. */
export interface Communication {
  /** A collective along an axis; `bytes` is the full buffer. */
  collective(
    kind: "all-reduce" | "all-gather" | "reduce-scatter",
    axis: "tp" | "cp" | "dp",
    bytes: Bytes,
  ): Seconds;
  /** A message of one rank to the next stage's. */
  send(bytes: Bytes): Seconds;
  /** The all-reduce of a tied embedding's gradient between first and last stage. */
  firstAndLast(bytes: Bytes): Seconds;
}

type Operation = "all-reduce" | "all-gather" | "reduce-scatter" | "send";

/** Evenly spaced devices from the first on, and what they were asked. */
interface Group {
  readonly ranks: readonly number[];
  readonly times: Readonly<Record<Operation, Map<Bytes, Seconds>>>;
}

/** The groups of a cluster, shared by all plans on it. */
export interface Network {
  readonly cluster: Cluster;
  /** By spacing and size: spacing · 2³⁰ + size, both of which a cluster keeps below that. */
  readonly groups: Map<number, Group>;
}

/** The network of a cluster, nothing asked of it yet. */
export function network(cluster: Cluster): Network {
  return { cluster, groups: new Map() };
}

function groupOf({ groups }: Network, spacing: number, size: number): Group {
  const key = spacing * 2 ** 30 + size;
  let group = groups.get(key);
  if (group === undefined) {
    group = {
      ranks: Array.from({ length: size }, (_, i) => i * spacing),
      times: {
        "all-reduce": new Map(),
        "all-gather": new Map(),
        "reduce-scatter": new Map(),
        send: new Map(),
      },
    };
    groups.set(key, group);
  }
  return group;
}

function time(on: Network, operation: Operation, group: Group, bytes: Bytes): Seconds {
  if (group.ranks.length < 2 || bytes === 0) return 0;
  const known = group.times[operation];
  let seconds = known.get(bytes);
  if (seconds === undefined) {
    seconds = collectiveTime({ operation, bytes, cluster: on.cluster, ranks: group.ranks });
    known.set(bytes, seconds);
  }
  return seconds;
}

/** The communication of `plan` on a network. */
export function communication(on: Network, plan: Plan): Communication {
  return new PlanCommunication(on, plan);
}

class PlanCommunication implements Communication {
  readonly #network: Network;
  readonly #groups: Readonly<Record<"tp" | "cp" | "dp", Group>>;
  readonly #replica: number;
  readonly #stages: number;

  constructor(on: Network, { tp, cp, dp, pp }: Plan) {
    this.#network = on;
    this.#replica = tp * cp * dp;
    this.#stages = pp;
    // Context-parallel ranks hold the same weights, so gradients are summed over them too.
    this.#groups = {
      tp: groupOf(on, 1, tp),
      cp: groupOf(on, tp, cp),
      dp: groupOf(on, tp, dp * cp),
    };
  }

  collective(kind: Exclude<Operation, "send">, axis: "tp" | "cp" | "dp", bytes: Bytes): Seconds {
    return time(this.#network, kind, this.#groups[axis], bytes);
  }

  send(bytes: Bytes): Seconds {
    if (this.#stages === 1) return 0;
    return time(this.#network, "send", groupOf(this.#network, this.#replica, 2), bytes);
  }

  firstAndLast(bytes: Bytes): Seconds {
    if (this.#stages === 1) return 0;
    const ends = groupOf(this.#network, this.#replica * (this.#stages - 1), 2);
    return time(this.#network, "all-reduce", ends, bytes);
  }
}

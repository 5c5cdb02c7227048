/**
 * Which devices talk to each other: rank = device, laid out in the order of the plan's axes. The group of rank 0
 * stands for all: the mesh repeats.
 */
import type { Bytes, Seconds } from "@trireme/core";
import { collectiveTime } from "@trireme/collectives";
import { type Cluster, hostIndex, hostOf } from "@trireme/topology";
import { type CollectiveOperator, type Plan, expertAxes, expertReplicas } from "@trireme/workload";

/** What a collective does. */
type CollectiveKind = CollectiveOperator["kind"];
/** Along which axis. */
type CollectiveAxis = CollectiveOperator["axis"];

/** Prices the communication of one plan on one cluster; equal requests are computed once. */
export interface Communication {
  /** A collective along an axis; `bytes` is the full buffer. */
  collective(kind: CollectiveKind, axis: CollectiveAxis, bytes: Bytes): Seconds;
  /** A message of one rank to the next stage's. */
  send(bytes: Bytes): Seconds;
  /** A collective among the pipeline ranks. */
  amongStages(operation: "broadcast" | "all-reduce", bytes: Bytes): Seconds;
  /** The all-reduce of a tied embedding's gradient between first and last stage. */
  firstAndLast(bytes: Bytes): Seconds;
}

/** What is timed. */
export type Operation = CollectiveKind | "send" | "broadcast";

/** Devices from the first on, and what they were asked. */
interface Group {
  readonly ranks: readonly number[];
  readonly times: Readonly<Record<Operation, Map<Bytes, Seconds>>>;
}

/** The groups of a cluster, shared by all plans on it. */
export interface Network {
  readonly cluster: Cluster;
  /**
   * Evenly spaced groups by spacing and size: spacing · 2³⁰ + size, both of which a cluster keeps below that; others by
   * their parts.
   */
  readonly groups: Map<number | string, Group>;
}

/** The network of a cluster, nothing asked of it yet. */
export function network(cluster: Cluster): Network {
  return { cluster, groups: new Map() };
}

/** So many ranks, so far apart. */
interface Run {
  readonly spacing: number;
  readonly size: number;
}

/** The group whose ranks are all sums of a multiple of each run's spacing. */
function groupOf({ groups }: Network, runs: readonly Run[]): Group {
  const merged = merge(runs);
  const [first] = merged;
  const key =
    first === undefined
      ? 1
      : merged.length === 1
        ? first.spacing * 2 ** 30 + first.size
        : merged.map((r) => `${r.spacing}x${r.size}`).join(" ");
  let group = groups.get(key);
  if (group === undefined) {
    let ranks = [0];
    for (const { spacing, size } of merged) {
      ranks = Array.from({ length: size }, (_, i) => i * spacing).flatMap((at) =>
        ranks.map((rank) => at + rank),
      );
    }
    group = {
      ranks,
      times: untimed(),
    };
    groups.set(key, group);
  }
  return group;
}

/** The time of an operation among devices that are told one by one. */
export function timeAmong(
  on: Network,
  operation: Operation,
  ranks: readonly number[],
  bytes: Bytes,
): Seconds {
  const key = `of ${ranks.join(" ")}`;
  let group = on.groups.get(key);
  if (group === undefined) {
    group = { ranks, times: untimed() };
    on.groups.set(key, group);
  }
  return time(on, operation, group, bytes);
}

/** The communication of one stage whose ranks are told: tensor parallelism alone. */
export function stageCommunication(on: Network, ranks: readonly number[]): Communication {
  return {
    collective: (kind, axis, bytes) => (axis === "tp" ? timeAmong(on, kind, ranks, bytes) : 0),
    send: () => 0,
    amongStages: () => 0,
    firstAndLast: () => 0,
  };
}

function untimed(): Group["times"] {
  return {
    "all-reduce": new Map(),
    "all-gather": new Map(),
    "reduce-scatter": new Map(),
    "all-to-all": new Map(),
    send: new Map(),
    broadcast: new Map(),
  };
}

/** Runs without those of one rank, nearest first, those that continue each other joined. */
function merge(runs: readonly Run[]): readonly Run[] {
  const merged: Run[] = [];
  for (const run of runs.filter((r) => r.size > 1).toSorted((a, b) => a.spacing - b.spacing)) {
    const last = merged.at(-1);
    if (last !== undefined && run.spacing === last.spacing * last.size) {
      merged[merged.length - 1] = { spacing: last.spacing, size: last.size * run.size };
    } else {
      merged.push(run);
    }
  }
  return merged;
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

/**
 * The communication of `plan` on a network; of a model with experts, how many a token is sent to, and the tokens of the
 * busiest rank over the mean.
 */
export function communication(on: Network, plan: Plan, active = 1, load = 1): Communication {
  return new PlanCommunication(on, plan, active, load);
}

/**
 * An exchange that brings a token once to each rank with experts of it, and once to each host in front of that
 * (DeepEP's normal kernels; HybridEP): between hosts and inside them side by side, so that the slower one counts.
 * `bytes` is what a rank sends if every copy travels on its own.
 */
function uniqueExchange(on: Network, group: Group, bytes: Bytes, active: number): Seconds {
  const { cluster } = on;
  const domain = (rank: number): number =>
    Math.floor(hostIndex(cluster, rank) / (hostOf(cluster, rank).scaleUpHosts ?? 1));
  const size = group.ranks.length;
  const first = domain(0);
  const inside = group.ranks.filter((rank) => domain(rank) === first);
  const outside = group.ranks.filter(
    (rank, i) => group.ranks.findIndex((other) => domain(other) === domain(rank)) === i,
  );
  const hosts = outside.length;
  if (hosts === 1) return time(on, "all-to-all", group, bytes);
  const once = bytes / distinct(size, active);
  const within = size === hosts ? 0 : exchange(on, inside, once * distinct(size, active));
  return Math.max(within, exchange(on, outside, once * distinct(hosts, active)));
}

/** Of `places` that hold as many experts each, those that have some of a token's `active`, under even load. */
function distinct(places: number, active: number): number {
  return places * (1 - (1 - 1 / places) ** active);
}

function exchange(on: Network, ranks: readonly number[], bytes: Bytes): Seconds {
  return collectiveTime({ operation: "all-to-all", bytes, cluster: on.cluster, ranks });
}

class PlanCommunication implements Communication {
  readonly #network: Network;
  readonly #plan: Plan;
  readonly #active: number;
  readonly #load: number;
  readonly #groups = new Map<CollectiveAxis, Group>();
  readonly #unique = new Map<Bytes, Seconds>();
  /** Ranks between one stage and the next. */
  readonly #stride: number;

  constructor(on: Network, plan: Plan, active: number, load: number) {
    this.#network = on;
    this.#plan = plan;
    this.#active = active;
    this.#load = load;
    this.#stride = spacingOf(plan, "pp");
  }

  collective(kind: CollectiveKind, axis: CollectiveAxis, bytes: Bytes): Seconds {
    let group = this.#groups.get(axis);
    if (group === undefined) {
      group = groupOf(this.#network, runsOf(this.#plan, axis));
      this.#groups.set(axis, group);
    }
    if (axis === "ep" && kind === "all-to-all") {
      const most = bytes * this.#load;
      return this.#plan.dispatch === "unique"
        ? this.#exchange(group, most)
        : time(this.#network, kind, group, most);
    }
    return time(this.#network, kind, group, bytes);
  }

  #exchange(group: Group, bytes: Bytes): Seconds {
    let seconds = this.#unique.get(bytes);
    if (seconds === undefined) {
      seconds = uniqueExchange(this.#network, group, bytes, this.#active);
      this.#unique.set(bytes, seconds);
    }
    return seconds;
  }

  send(bytes: Bytes): Seconds {
    if (this.#plan.pp === 1) return 0;
    const pair = groupOf(this.#network, [{ spacing: this.#stride, size: 2 }]);
    return time(this.#network, "send", pair, bytes);
  }

  amongStages(operation: "broadcast" | "all-reduce", bytes: Bytes): Seconds {
    const stages = groupOf(this.#network, [{ spacing: this.#stride, size: this.#plan.pp }]);
    return time(this.#network, operation, stages, bytes);
  }

  firstAndLast(bytes: Bytes): Seconds {
    if (this.#plan.pp === 1) return 0;
    const ends = groupOf(this.#network, [{ spacing: this.#stride * (this.#plan.pp - 1), size: 2 }]);
    return time(this.#network, "all-reduce", ends, bytes);
  }
}

/** Ranks from one coordinate of an axis to the next: the product of the sizes before it. */
function spacingOf(p: Plan, axis: "tp" | "cp" | "dp" | "pp"): number {
  let product = 1;
  for (const name of p.order) {
    if (name === axis) return product;
    product *= p[name];
  }
  return product;
}

function runsOf(p: Plan, axis: CollectiveAxis): readonly Run[] {
  switch (axis) {
    case "tp":
    case "cp":
      return [{ spacing: spacingOf(p, axis), size: p[axis] }];
    case "dp":
      // Context-parallel ranks hold the same weights, so gradients are summed over them too.
      return [
        { spacing: spacingOf(p, "cp"), size: p.cp },
        { spacing: spacingOf(p, "dp"), size: p.dp },
      ];
    case "etp":
    case "ep":
    case "edp": {
      let product = 1;
      for (const { name, size } of expertAxes(p)) {
        if (name === axis) return [{ spacing: product, size }];
        product *= size;
      }
      return [{ spacing: product, size: expertReplicas(p) }];
    }
  }
}

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
  readonly collective: (
    kind: "all-reduce" | "all-gather" | "reduce-scatter",
    axis: "tp" | "cp" | "dp",
    bytes: Bytes,
  ) => Seconds;
  /** A message of one rank to the next stage's. */
  readonly send: (bytes: Bytes) => Seconds;
  /** The all-reduce of a tied embedding's gradient between first and last stage. */
  readonly firstAndLast: (bytes: Bytes) => Seconds;
}

/** The communication of `plan` on `cluster`. */
export function communication(cluster: Cluster, plan: Plan): Communication {
  const tp = Array.from({ length: plan.tp }, (_, i) => i);
  const cp = Array.from({ length: plan.cp }, (_, i) => i * plan.tp);
  // Context-parallel ranks hold the same weights, so gradients are summed over them too.
  const dp = Array.from({ length: plan.dp * plan.cp }, (_, i) => i * plan.tp);
  const replica = plan.tp * plan.cp * plan.dp;
  const groups = { tp, cp, dp };
  const known = new Map<string, Seconds>();
  const time = (
    operation: "all-reduce" | "all-gather" | "reduce-scatter" | "send",
    name: string,
    group: readonly number[],
    bytes: number,
  ): Seconds => {
    if (group.length < 2 || bytes === 0) return 0;
    const key = `${operation} ${name} ${bytes}`;
    let seconds = known.get(key);
    if (seconds === undefined) {
      seconds = collectiveTime({ operation, bytes, cluster, ranks: group });
      known.set(key, seconds);
    }
    return seconds;
  };
  return {
    collective: (kind, axis, bytes) => time(kind, axis, groups[axis], bytes),
    send: (bytes) => (plan.pp > 1 ? time("send", "pp", [0, replica], bytes) : 0),
    firstAndLast: (bytes) =>
      plan.pp > 1 ? time("all-reduce", "ends", [0, replica * (plan.pp - 1)], bytes) : 0,
  };
}

/** A plan on fewer or more replicas: data parallelism shrinks and grows, and the global batch stays. */
import { TriremeError } from "@trireme/core";
import type { Cluster } from "@trireme/topology";
import { type Model, type Plan, definePlan, ranks } from "@trireme/workload";

/** Replicas whose ranks exchange tokens with each other's experts: they come and go together. */
export function coupledReplicas({ ep, etp, tp, cp }: Plan): number {
  return Math.max(1, Math.ceil((ep * etp) / (tp * cp)));
}

/** The fewest hosts that hold whole replicas, all of whose experts are among them. */
export function replicaHosts(plan: Plan, cluster: Cluster): number {
  const devices = devicesPerHost(cluster);
  const group = (ranks(plan) / plan.dp) * coupledReplicas(plan);
  return group / greatestDivisor(group, devices);
}

/** Devices of each host. A cluster of unlike hosts is refused. */
export function devicesPerHost(cluster: Cluster): number {
  const devices = cluster.devices / cluster.hosts;
  if (!cluster.pools.every(({ host }) => host.accelerators === devices)) {
    throw new TriremeError(
      "RUN",
      `hosts of ${cluster.pools.map(({ host }) => host.accelerators).join(" and ")} devices: a run is simulated on hosts with equally many`,
    );
  }
  return devices;
}

/**
 * The plan as so many hosts train it: each replica takes the microbatches that the replicas gone
 * would have, the fullest one's time being the step's, up to the next number that the schedule plays.
 * @throws TriremeError "PLAN" where no such plan is legal.
 */
export function elasticPlan(model: Model, plan: Plan, devices: number): Plan {
  if (devices === ranks(plan)) return plan;
  const dp = devices / (ranks(plan) / plan.dp);
  const each = dp * plan.microbatch;
  const fewest = Math.ceil(plan.globalBatch / each);
  let refused: unknown;
  for (let count = fewest; count < fewest + plan.pp; count++) {
    try {
      return definePlan(model, { ...plan, dp, globalBatch: each * count });
    } catch (error) {
      refused = error;
    }
  }
  throw refused;
}

function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}

/** What a run of weeks is simulated from, and what is worked out of it once for all seeds. */
import { minutes, type Seconds, TriremeError } from "@trireme/core";
import type { ControllerOptions } from "@trireme/fault-tolerance";
import type { Cluster } from "@trireme/topology";
import { type Model, type Plan, ranks } from "@trireme/workload";
import { type CheckpointStorage, type SaveTimes, StorageTimes } from "./checkpoint-storage.ts";
import { devicesPerHost, replicaHosts } from "./elastic-plan.ts";
import { type BillOptions, type RunPower, runPower } from "./run-bill.ts";
import type { RunFaultOptions } from "./run-faults.ts";
import type { Drift } from "./run-pace.ts";
import type { Startup } from "./startup.ts";
import { type StepTimes, estimatedStepTimes } from "./step-times.ts";

/** How the controller is to recover; hosts and standbys are the cluster's. */
export type Recovery = Partial<Omit<ControllerOptions, "hosts" | "standbys">>;

export interface RunOptions extends RunFaultOptions, BillOptions {
  readonly model: Model;
  readonly plan: Plan;
  /** Its first hosts train, the others stand by. */
  readonly cluster: Cluster;
  readonly horizon: Seconds;
  readonly checkpoint: CheckpointStorage;
  /** Of the plan on the cluster; the cost model's where left out. */
  readonly steps?: StepTimes;
  /**
   * By default hosts that are silent for a minute are evicted, and training waits for as many hosts as
   * before; `minimum` and `patience` let it shrink to whole replicas, `regrow` grow again.
   */
  readonly recovery?: Recovery;
  /** Between two reports of a host; 10 s by default, and no longer than from a save to the next. */
  readonly heartbeat?: Seconds;
  /** From the order to halt until a host has left, self-checks included; 60 s by default. */
  readonly leave?: Seconds;
  /** From an eviction until the host, repaired, or another in its stead is a standby; 12 minutes. */
  readonly replacement?: Seconds;
  readonly startup?: Startup;
  readonly drift?: Drift;
}

/** A run without its seed. */
export interface PreparedRun {
  readonly options: RunOptions;
  readonly steps: StepTimes;
  readonly storage: StorageTimes;
  readonly save: SaveTimes;
  readonly controller: ControllerOptions;
  /** Of the whole plan, nobody slow. */
  readonly step: Seconds;
  readonly heartbeat: Seconds;
  readonly leave: Seconds;
  readonly replacement: Seconds;
  readonly devices: number;
  readonly power: RunPower;
}

/**
 * Works out what all seeds have in common.
 * @throws TriremeError "RUN" where the plan has no place on the cluster or cannot run, "STORAGE" for a
 * storage that cannot keep up, "CONTROLLER" for recovery options that contradict themselves.
 */
export function prepareRun(options: RunOptions): PreparedRun {
  const { model, plan, cluster, checkpoint, recovery, horizon } = options;
  const { leave = 60, replacement = minutes(12) } = options;
  const devices = devicesPerHost(cluster);
  const hosts = Math.ceil(ranks(plan) / devices);
  if (hosts > cluster.hosts) {
    throw new TriremeError(
      "RUN",
      `the plan's ${ranks(plan)} ranks need ${hosts} hosts of ${devices}, but the cluster has ${cluster.hosts}`,
    );
  }
  if (!(horizon > 0 && horizon < Infinity)) {
    throw new TriremeError("RUN", `horizon = ${horizon} s must be above 0, and finite`);
  }
  const steps = options.steps ?? estimatedStepTimes({ model, plan, cluster });
  const step = steps.time(hosts);
  const storage = new StorageTimes(checkpoint, devices);
  storage.check(hosts, step);
  const save = storage.save(hosts);
  const heartbeat = options.heartbeat ?? Math.min(10, save.every * step);
  // Where replicas do not come out even with the hosts, none can go without the others.
  const replica = replicaHosts(plan, cluster);
  const unit = hosts % replica === 0 ? replica : hosts;
  const all = Array.from({ length: cluster.hosts }, (_, host) => host);
  return {
    options,
    steps,
    storage,
    save,
    controller: {
      deadline: 60,
      leave: Math.max(600, 2 * leave),
      unit,
      minimum: hosts,
      patience: Infinity,
      ...recovery,
      hosts: all.slice(0, hosts),
      standbys: all.slice(hosts),
    },
    step,
    heartbeat,
    leave,
    replacement,
    devices,
    power: runPower(options),
  };
}

/** Runs of the published systems, as their papers describe them. */
import { TBps, days, minutes } from "@trireme/core";
import { failureRates, llama3Causes, stopSources } from "@trireme/fault-tolerance";
import { type RunOptions, stateBytes } from "@trireme/simulator";
import { defineCluster } from "@trireme/topology";
import { type Model, type PlanOptions, defineModel, definePlan, model } from "@trireme/workload";

/** Llama 3 405B on 16,384 H100: 54 days, 419 unexpected interruptions. */
export function llama3(): RunOptions {
  const llama = model("llama3-405b");
  const plan = definePlan(llama, {
    tp: 8,
    pp: 16,
    dp: 128,
    globalBatch: 2048,
    sequence: 8192,
    zero: 2,
    sequenceParallel: true,
  });
  const cluster = defineCluster({ host: "dgx-h100", hosts: 2048 + 16 });
  return {
    model: llama,
    plan,
    cluster,
    horizon: days(54),
    sources: stopSources(cluster, llama3Causes, failureRates["llama3-405b"] * (2048 / 2064)),
    // Tectonic sustains 2 TB/s.
    checkpoint: { way: "two-stage", every: 50, state: stateBytes(llama), storage: TBps(2) },
    startup: { standby: 300, inPlace: 300 },
    leave: minutes(2),
  };
}

const tiny: Model = defineModel({
  layers: 8,
  hidden: 1024,
  heads: 16,
  vocab: 32_000,
  context: 1024,
});

/** Eight hosts of eight, two standbys, and whatever is asked for. */
export function small(options: Partial<RunOptions> = {}): RunOptions {
  const plan = definePlan(tiny, {
    tp: 4,
    pp: 4,
    dp: 4,
    globalBatch: 4096,
    zero: 1,
  } satisfies PlanOptions);
  return {
    model: tiny,
    plan,
    cluster: defineCluster({ host: "dgx-a100-80", hosts: 10 }),
    horizon: days(3),
    sources: [],
    checkpoint: { way: "two-stage", every: 40, state: stateBytes(tiny), storage: 1e9 },
    ...options,
  };
}

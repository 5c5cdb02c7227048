import { TBps, days, minutes } from "@trireme/core";
import {
  failureRates,
  flapSource,
  llama3Causes,
  outageSource,
  stopSources,
  stragglerSource,
} from "@trireme/fault-tolerance";
import { type RunOptions, simulateRun, simulateRuns, stateBytes } from "@trireme/simulator";
import { defineCluster } from "@trireme/topology";
import { type Model, type Plan, definePlan, model } from "@trireme/workload";

/** Everything that the failure models have: stops, whole ToR sets, slow hosts, links that flap. */
function run(m: Model, plan: Plan, host: string, hosts: number, horizon: number): RunOptions {
  const cluster = defineCluster({ host, hosts });
  return {
    model: m,
    plan,
    cluster,
    horizon,
    sources: [
      ...stopSources(cluster, llama3Causes, failureRates["llama3-405b"]),
      outageSource("tor-set", days(3000)),
      stragglerSource(days(1990)),
      flapSource(days(600)),
    ],
    checkpoint: { way: "two-stage", every: 50, state: stateBytes(m), storage: TBps(2) },
    leave: minutes(2),
    recovery: { restarts: 10 },
  };
}

const llama = model("llama3-405b");
const llama3 = run(
  llama,
  definePlan(llama, {
    tp: 8,
    pp: 16,
    dp: 128,
    globalBatch: 2048,
    sequence: 8192,
    zero: 2,
    sequenceParallel: true,
  }),
  "dgx-h100",
  2048 + 16,
  days(54),
);

const gpt3 = model("gpt3-175b");
const megascale = run(
  gpt3,
  definePlan(gpt3, {
    tp: 8,
    pp: 8,
    vpp: 6,
    dp: 192,
    globalBatch: 6144,
    sequenceParallel: true,
    recompute: "selective",
    zero: 1,
  }),
  "dgx-a100-80",
  1536 + 16,
  days(30),
);

const months = 20;

export const benchmarks = [
  {
    id: "simulator/llama3-54-days",
    what: "54 days of Llama 3 405B on 16,384 GPUs with stops, outages, slow hosts and link flaps, priced and accounted for",
    unit: "s",
    better: "lower",
    target: 1,
    time: (): void => {
      simulateRun({ ...llama3, seed: 1 });
    },
  },
  {
    id: "simulator/thousand-months",
    what: "1,000 Monte-Carlo months of GPT-3 175B on 12,288 GPUs with the same, from 20 of them",
    unit: "s",
    better: "lower",
    target: 60,
    measure: (): number => {
      const before = process.cpuUsage();
      simulateRuns({ ...megascale, seeds: Array.from({ length: months }, (_, seed) => seed) });
      const { user, system } = process.cpuUsage(before);
      return ((user + system) / 1e6 / months) * 1000;
    },
    repeats: 3,
  },
] as const;

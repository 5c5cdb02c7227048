import { TBps, days, formatPercent } from "@trireme/core";
import { failureRates, llama3Causes, stopSources } from "@trireme/fault-tolerance";
import { bestSaveEvery, estimatedStepTimes, meanTimeBetweenStops, simulateRuns, simulateRun, stateBytes } from "@trireme/simulator";
import { defineCluster } from "@trireme/topology";
import { definePlan, model } from "@trireme/workload";

const llama = model("llama3-405b");
const degrees = { tp: 8, pp: 16, dp: 128, zero: 2, sequenceParallel: true } as const;
const plan = definePlan(llama, { ...degrees, globalBatch: 2048, sequence: 8192 });
// 2,048 hosts and 16 standbys.
const cluster = defineCluster({ host: "dgx-h100", hosts: 2064 });
const sources = stopSources(cluster, llama3Causes, failureRates["llama3-405b"]);
const state = stateBytes(llama);
const checkpoint = { way: "two-stage", every: 50, state, storage: TBps(2) } as const;
const run = { model: llama, plan, cluster, sources, checkpoint, horizon: days(54) };
const { ettr, interruptions, causes } = simulateRun({ ...run, seed: 1 });
console.log(`${interruptions.length} interruptions, ETTR ${formatPercent(ettr)}`);
console.log(`most time to ${causes[0]!.cause}: ${(causes[0]!.time / 3600).toFixed(1)} h`);
const { low, high } = simulateRuns({ ...run, seeds: [1, 2, 3, 4, 5, 6, 7, 8] }).ettr;
console.log(`mean of eight seeds in [${low.toFixed(4)}, ${high.toFixed(4)}]`);

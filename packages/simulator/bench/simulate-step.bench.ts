import { simulateStep, simulatedStep, sumStep } from "@trireme/simulator";
import { toChakra } from "@trireme/simulator/chakra";
import { defineCluster } from "@trireme/topology";
import { definePlan, model } from "@trireme/workload";
import { astraSim, runInAstraSim } from "../test/slow/in-astra-sim.ts";

const gpt3 = model("gpt3-175b");
const cluster = defineCluster({ host: "dgx-a100-80", hosts: 1536 });
// MegaScale's plan (NSDI 2024, Table 2).
const plan = definePlan(gpt3, {
  tp: 8,
  pp: 8,
  vpp: 6,
  dp: 192,
  globalBatch: 6144,
  sequenceParallel: true,
  recompute: "selective",
  zero: 1,
});

const llama = model("llama2-7b");
const small = defineCluster({ host: "dgx-a100-80", hosts: 32 });
const smallPlan = definePlan(llama, {
  tp: 4,
  pp: 4,
  dp: 16,
  globalBatch: 512,
  sequenceParallel: true,
  zero: 1,
});

/** The same step's traces in ASTRA-sim 2: CPU seconds. */
function inAstraSim(): number {
  const step = simulatedStep({ model: llama, plan: smallPlan, cluster: small, unfold: true });
  const network = { bandwidth: 25e9, latency: 1e-6 };
  return runInAstraSim(toChakra(step.program), network, false).seconds;
}

interface Whole {
  readonly seconds: number;
  readonly megabytes: number;
  readonly eventsPerSecond: number;
}

let whole: Whole | undefined;

/** All 12,288 ranks, once for the figures that are taken of it. */
function simulateWhole(): Whole {
  if (whole !== undefined) return whole;
  const before = process.cpuUsage();
  const { events } = sumStep({ model: gpt3, plan, cluster, unfold: true });
  const { user, system } = process.cpuUsage(before);
  const seconds = (user + system) / 1e6;
  const megabytes = process.resourceUsage().maxRSS / 1e3;
  whole = { seconds, megabytes, eventsPerSecond: events / seconds };
  return whole;
}

export const benchmarks = [
  {
    id: "simulator/gpt3-12288",
    what: "seconds to simulate a step of GPT-3 175B on 12,288 GPUs, folded, every kernel a span",
    unit: "s",
    better: "lower",
    target: 0.5,
    time: (): void => {
      simulateStep({ model: gpt3, plan, cluster, grain: "operator" });
    },
  },
  {
    id: "simulator/7b-256",
    what: "seconds to simulate a step of a 7B model on 256 GPUs (dp16, tp4, pp4), every rank, every span kept",
    unit: "s",
    better: "lower",
    target: 1.5,
    time: (): void => {
      simulateStep({ model: llama, plan: smallPlan, cluster: small, unfold: true });
    },
    peer:
      astraSim === undefined
        ? {
            name: "ASTRA-sim 2 analytical",
            value: 3.2,
            source: "CPU seconds of its code of March 2026 with ASTRA_SIM set",
          }
        : { name: "ASTRA-sim 2 analytical", measure: inAstraSim },
  },
  {
    id: "simulator/7b-256-shared",
    what: "seconds to simulate that step where collectives and sends share links, in sums",
    unit: "s",
    better: "lower",
    target: 1.5,
    time: (): void => {
      sumStep({ model: llama, plan: smallPlan, cluster: small, network: "shared" });
    },
  },
  {
    id: "simulator/gpt3-12288-unfolded",
    what: "CPU seconds to simulate the same step with every rank an actor, in sums",
    unit: "s",
    better: "lower",
    target: 60,
    measure: (): number => simulateWhole().seconds,
  },
  {
    id: "simulator/gpt3-12288-unfolded-memory",
    what: "peak resident memory of that",
    unit: "MB",
    better: "lower",
    target: 4000,
    measure: (): number => simulateWhole().megabytes,
  },
  {
    id: "simulator/gpt3-12288-unfolded-events",
    what: "events of that step per second, its program's building included",
    unit: "events/s",
    better: "higher",
    target: 2e6,
    measure: (): number => simulateWhole().eventsPerSecond,
  },
] as const;

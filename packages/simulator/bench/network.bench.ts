import { ringAllReduce } from "@trireme/collectives";
import { collectiveFlows, playPlan, simulateFlows } from "@trireme/simulator";
import { chakraCollectives, chakraNodeTypes } from "@trireme/simulator/chakra";
import { defineCluster, linkBetween, megascaleFabric } from "@trireme/topology";
import { astraSim, runInAstraSim } from "../test/slow/in-astra-sim.ts";

const ranks = 1024;
const cluster = defineCluster({
  host: "dgx-a100-80",
  hosts: ranks / 8,
  fabric: megascaleFabric({ hosts: ranks / 8 }),
});
const devices = Array.from({ length: ranks }, (_, rank) => rank);

function everySend(): void {
  const plan = ringAllReduce(ranks);
  playPlan(plan, { bytes: 1e9, way: (from, to) => linkBetween(cluster, from, to) });
}

/** Two rings of all devices in different orders, so that they share ports and cables. */
function flows(): void {
  const order = devices.map((_, i) => (i % 8) * (ranks / 8) + Math.floor(i / 8));
  const plan = ringAllReduce(ranks);
  const both = [devices, order].flatMap((list, group) =>
    collectiveFlows(plan, { devices: list, bytes: 1e9, group }),
  );
  simulateFlows({ cluster, flows: both });
}

const ring = ringAllReduce(ranks);

/** Every event is a message that arrives and lets a rank go on to its next step. */
function events(): void {
  playPlan(ring, { bytes: 1e9, way: (from, to) => linkBetween(cluster, from, to) });
}

/** The same ring in ASTRA-sim 2: CPU seconds. */
function inAstraSim(): number {
  const node = {
    id: 0,
    name: "all-reduce",
    type: chakraNodeTypes.collective,
    controlDependencies: [],
    dataDependencies: [],
    duration: 0,
    attributes: { is_cpu_op: false, comm_type: chakraCollectives["all-reduce"], comm_size: 1e9 },
  };
  const trace = { version: "0.0.4", nodes: [node] };
  const workload = { traces: devices.map(() => trace), groups: {} };
  return runInAstraSim(workload, { bandwidth: 25e9, latency: 1e-6 }, false).seconds;
}

let peak: number | undefined;

export const benchmarks = [
  {
    id: "simulator/ring-1024-memory",
    what: "peak resident memory of a 1 GB ring all-reduce over 1,024 ranks, every send an event",
    unit: "MB",
    better: "lower",
    target: 400,
    measure: (): number => {
      everySend();
      return (peak ??= process.resourceUsage().maxRSS / 1e3);
    },
    peer: { name: "ASTRA-sim 2 analytical", value: 360, source: "run on two cores" },
  },
  {
    id: "simulator/ring-1024",
    what: "seconds for a 1 GB ring all-reduce over 1,024 ranks, every send an event, its plan included",
    unit: "s",
    better: "lower",
    target: 1.5,
    time: everySend,
    peer:
      astraSim === undefined
        ? {
            name: "ASTRA-sim 2 analytical",
            value: 3.9,
            source: "CPU seconds of its code of March 2026 with ASTRA_SIM set",
          }
        : { name: "ASTRA-sim 2 analytical", measure: inAstraSim },
  },
  {
    id: "simulator/ring-1024-flows",
    what: "seconds for two such rings at once as flows that contend on a fabric, routing included",
    unit: "s",
    better: "lower",
    target: 3,
    time: flows,
  },
  {
    id: "simulator/events",
    what: "events a second of a plan that is played: each takes a message in and lets its rank go on",
    unit: "events/s",
    better: "higher",
    target: 2e6,
    amount: ring.source.length,
    time: events,
  },
] as const;

/** A cluster of 131,072 accelerators with its fabric and mesh, and every group of one rank. */
import {
  defineCluster,
  expertGroupOf,
  foldExperts,
  groupOf,
  megascaleFabric,
  meshFromOrder,
} from "@trireme/topology";

const hosts = 16_384;

function buildAndAsk() {
  const fabric = megascaleFabric({ hosts });
  const cluster = defineCluster({ host: "dgx-a100-80", hosts, fabric });
  const mesh = meshFromOrder("tp-cp-dp-pp", { tp: 8, cp: 4, dp: 256, pp: 16 });
  const experts = foldExperts(mesh, { ep: 64 });
  const rank = cluster.devices - 1;
  const axes = ["tp", "cp", "dp", "pp", ["tp", "cp"], ["dp", "cp"], ["tp", "pp"]];
  const groups = [
    ...axes.map((axis) => groupOf(mesh, rank, axis)),
    ...["ep", "edp"].map((axis) => expertGroupOf(experts, rank, axis)),
  ];
  return { cluster, experts, groups, index: () => fabric.graph.out };
}

/** Bytes that the program holds, typed arrays included, after a collection. */
function held(): number {
  globalThis.gc?.();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

const empty = held();
// Before anything has warmed up: what a program that plans once waits for.
const before = process.cpuUsage();
const built = buildAndAsk();
const { user, system } = process.cpuUsage(before);
const cold = (user + system) / 1e6;
built.index();
const bytes = held() - empty;

export const benchmarks = [
  {
    id: "topology/build-131072-cold",
    what: "CPU seconds to build 131,072 GPUs with fabric and mesh and ask for all groups of a rank, once, cold",
    unit: "s",
    better: "lower",
    target: 0.05,
    measure: (): number => cold,
  },
  {
    id: "topology/bytes-131072",
    what: "bytes that this cluster, its mesh and the groups hold, the graph's index by node included",
    unit: "bytes",
    better: "lower",
    target: 1e8,
    // `built` is read after the count, so that nothing of it was collected before.
    measure: (): number => (built.cluster.devices > 0 ? bytes : 0),
  },
  {
    id: "topology/build-131072",
    what: "the same, warm",
    unit: "s",
    better: "lower",
    target: 0.05,
    time: (): void => {
      buildAndAsk();
    },
  },
] as const;

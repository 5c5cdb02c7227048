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

function buildAndAsk(): void {
  const fabric = megascaleFabric({ hosts });
  const cluster = defineCluster({ host: "dgx-a100-80", hosts, fabric });
  const mesh = meshFromOrder("tp-cp-dp-pp", { tp: 8, cp: 4, dp: 256, pp: 16 });
  const experts = foldExperts(mesh, { ep: 64 });
  const rank = cluster.devices - 1;
  for (const axis of ["tp", "cp", "dp", "pp", ["tp", "cp"], ["dp", "cp"], ["tp", "pp"]]) {
    groupOf(mesh, rank, axis);
  }
  for (const axis of ["ep", "edp"]) expertGroupOf(experts, rank, axis);
}

// Before anything has warmed up: what a program that plans once waits for.
const before = process.cpuUsage();
buildAndAsk();
const { user, system } = process.cpuUsage(before);
const cold = (user + system) / 1e6;

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
    id: "topology/build-131072",
    what: "the same, warm",
    unit: "s",
    better: "lower",
    target: 0.05,
    time: buildAndAsk,
  },
] as const;

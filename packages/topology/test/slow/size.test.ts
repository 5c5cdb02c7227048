// Slow: builds the largest cluster that the package promises, and weighs it.
import { expect, test } from "vitest";
import {
  defineCluster,
  expertGroupOf,
  foldExperts,
  groupOf,
  megascaleFabric,
  meshFromOrder,
  routeFlows,
} from "@trireme/topology";

/** Bytes in use, typed arrays included. */
function used(): number {
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

test("131,072 GPUs with fabric, mesh and all groups of a rank take less than 100 MB", () => {
  const before = used();
  const hosts = 16_384;
  const cluster = defineCluster({ host: "dgx-a100-80", hosts, fabric: megascaleFabric({ hosts }) });
  const mesh = meshFromOrder("tp-cp-dp-pp", { tp: 8, cp: 4, dp: 256, pp: 16 });
  const experts = foldExperts(mesh, { ep: 64 });
  const rank = cluster.devices - 1;
  const groups = [
    ...["tp", "cp", "dp", "pp"].map((axis) => groupOf(mesh, rank, axis)),
    ...["ep", "edp"].map((axis) => expertGroupOf(experts, rank, axis)),
  ];
  expect(groups.map((g) => g.length)).toEqual([8, 4, 256, 16, 64, 128]);
  // Nothing else is held, so garbage can only make the figure larger.
  expect(used() - before).toBeLessThan(100e6);
});

test("groups of a mesh of 10^12 ranks take no more than the groups", () => {
  const before = used();
  const mesh = meshFromOrder("tp-dp-pp", { tp: 1000, dp: 1_000_000, pp: 1000 });
  expect(groupOf(mesh, mesh.ranks - 1, "pp").at(-1)).toBe(1e12 - 1);
  expect(used() - before).toBeLessThan(10e6);
});

test("every host of a 12,288-GPU MegaScale cluster reaches every set of every pod", () => {
  const fabric = megascaleFabric({ hosts: 1536 });
  const from: number[] = [];
  const to: number[] = [];
  for (let a = 0; a < 1536; a++) {
    for (let b = 0; b < 1536; b += 32) {
      from.push(a * 8);
      to.push(b * 8);
    }
  }
  expect(routeFlows(fabric, { from, to }).flows).toBe(from.length);
});

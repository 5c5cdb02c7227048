import { bench, describe } from "vitest";
import {
  defineCluster,
  expertGroupOf,
  foldExperts,
  groupOf,
  megascaleFabric,
  meshFromOrder,
} from "@trireme/topology";

// Target: under 50 ms and 100 MB (the memory is held by test/slow/size.test.ts).
describe("131,072 GPUs: cluster, fabric, mesh, and all groups of one rank", () => {
  bench("build and ask", () => {
    const hosts = 16_384;
    const cluster = defineCluster({
      host: "dgx-a100-80",
      hosts,
      fabric: megascaleFabric({ hosts }),
    });
    const mesh = meshFromOrder("tp-cp-dp-pp", { tp: 8, cp: 4, dp: 256, pp: 16 });
    const experts = foldExperts(mesh, { ep: 64 });
    const rank = cluster.devices - 1;
    for (const axis of ["tp", "cp", "dp", "pp", ["tp", "cp"], ["dp", "cp"], ["tp", "pp"]]) {
      groupOf(mesh, rank, axis);
    }
    for (const axis of ["ep", "edp"]) expertGroupOf(experts, rank, axis);
  });
});

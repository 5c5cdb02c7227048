/**
 * All-to-all in two levels over hosts: (g - 1) + (N - 1) longer messages in place of n - 1 short
 * ones, and between hosts only ranks of the same place talk, which keeps a rail-optimised network on
 * its leaf switches. The 2D form gathers inside the host first (Tutel, MLSys 2023), the rail-aligned
 * form crosses first and spreads inside the target host (DeepSeek-V3, section 3.2.2).
 */
import { type HostGrid, checkGrid } from "./hierarchical.ts";
import { type CollectivePlan, PlanBuilder } from "./plan.ts";

function build(
  grid: HostGrid,
  algorithm: string,
  fill: (builder: PlanBuilder, ranks: number) => void,
): CollectivePlan {
  checkGrid(grid);
  const ranks = grid.hosts * grid.perHost;
  const chunks = ranks * ranks;
  const builder = new PlanBuilder({ operation: "all-to-all", algorithm, ranks, chunks });
  fill(builder, ranks);
  return builder.finish();
}

/** 2D all-to-all: inside the host to the target's place, then between hosts. */
export function twoDimensionalAllToAll(grid: HostGrid): CollectivePlan {
  const { hosts, perHost } = grid;
  return build(grid, "2d", (builder, ranks) => {
    for (let t = 1; t < perHost; t++) {
      for (let rank = 0; rank < ranks; rank++) {
        const l = rank % perHost;
        const place = (l + t) % perHost;
        for (let host = 0; host < hosts; host++) {
          const chunk = rank * ranks + host * perHost + place;
          builder.add(rank, rank - l + place, chunk, 1, false);
        }
      }
      builder.step();
    }
    for (let t = 1; t < hosts; t++) {
      for (let rank = 0; rank < ranks; rank++) {
        const l = rank % perHost;
        const h = (rank - l) / perHost;
        const target = ((h + t) % hosts) * perHost + l;
        for (let place = 0; place < perHost; place++) {
          builder.add(rank, target, (rank - l + place) * ranks + target, 1, false);
        }
      }
      builder.step();
    }
  });
}

/** Rail-aligned all-to-all: between hosts on the sender's place, then inside the target's host. */
export function railAlignedAllToAll(grid: HostGrid): CollectivePlan {
  const { hosts, perHost } = grid;
  return build(grid, "rail-aligned", (builder, ranks) => {
    for (let t = 1; t < hosts; t++) {
      for (let rank = 0; rank < ranks; rank++) {
        const l = rank % perHost;
        const host = ((rank - l) / perHost + t) % hosts;
        builder.add(rank, host * perHost + l, rank * ranks + host * perHost, perHost, false);
      }
      builder.step();
    }
    for (let t = 1; t < perHost; t++) {
      for (let rank = 0; rank < ranks; rank++) {
        const l = rank % perHost;
        const target = rank - l + ((l + t) % perHost);
        for (let host = 0; host < hosts; host++) {
          builder.add(rank, target, (host * perHost + l) * ranks + target, 1, false);
        }
      }
      builder.step();
    }
  });
}

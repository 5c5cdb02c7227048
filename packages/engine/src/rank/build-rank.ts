/** A rank with a memory of its own, from what its thread was given. */
import type { Communicator } from "@trireme/collectives";
import type { Seconds } from "@trireme/core";
import { withBackend } from "../kernels/gemm-backend.ts";
import { HostMemory } from "../weights/host-place.ts";
import { type Kernels, createKernels } from "../kernels/kernels.ts";
import { Pool } from "../memory/pool.ts";
import type { RankSeed } from "./protocol.ts";
import { createRankMemory } from "../memory/rank-memory.ts";
import { rankPlace } from "../layout/rank-place.ts";
import { Rank } from "./rank.ts";

/** A rank, and the memory of its tensors. */
export interface BuiltRank {
  readonly rank: Rank;
  readonly pool: Pool;
}

/** What a rank is built from; which one it is, its communicator says. */
export type RankPlans = Pick<
  RankSeed,
  "model" | "plan" | "optimizer" | "seed" | "rehearse" | "router" | "engine" | "corruption"
>;

/** @param sleep How it sleeps when it rehearses; left out, for real. */
export function buildRank(
  seed: RankPlans,
  communicator: Communicator,
  now: () => Seconds,
  sleep?: (seconds: Seconds) => void,
): BuiltRank {
  const { memory, base } = createRankMemory();
  const pool = new Pool(memory, base);
  const kernelsOf = (of: WebAssembly.Memory): Kernels =>
    withBackend(createKernels(of), of, seed.engine.kernels);
  const rank = new Rank({
    ...seed,
    fp8Scaling: seed.engine.fp8Scaling,
    place: rankPlace(seed.model, seed.plan, communicator.rank),
    communicator,
    kernels: kernelsOf(memory),
    host: seed.plan.offload === "optimizer" ? new HostMemory(kernelsOf) : undefined,
    pool,
    now,
    sleep,
  });
  return { rank, pool };
}

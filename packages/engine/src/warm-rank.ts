/**
 * A rank that rehearses, with its code compiled: steps among all ranks in which nobody sleeps come
 * before those whose time is to be told, as with any benchmark.
 */
import type { Communicator } from "@trireme/collectives";
import type { Seconds } from "@trireme/core";
import { type BuiltRank, type RankPlans, buildRank } from "./build-rank.ts";
import { sleepNow } from "./stage-rehearsal.ts";

/** Builds the rank, and plays the steps that its rehearsal begins with; every rank does so. */
export function warmRank(
  plans: RankPlans,
  communicator: Communicator,
  now: () => Seconds,
): BuiltRank {
  let sleeps = false;
  const built = buildRank(plans, communicator, now, (seconds) => {
    if (sleeps) sleepNow(seconds);
  });
  const { globalBatch, sequence } = plans.plan;
  const tokens = new Int32Array(globalBatch * (sequence + 1));
  const warmUps = plans.rehearse?.warmUps ?? 0;
  for (let step = 0; step < warmUps; step++) built.rank.train(tokens, 1, 0);
  sleeps = true;
  return built;
}

/**
 * What ranks do when they rehearse, found by running each alone: nothing comes from the others, and
 * what would be slept goes by at once. One rank's memory is enough for any number of them.
 */
import type { Seconds } from "@trireme/core";
import { ranks } from "@trireme/workload";
import { type RankPlans, buildRank } from "../rank/build-rank.ts";
import type { Trace, TraceShard } from "./trace.ts";
import { EventList } from "./trace-sink.ts";
import { TraceRecorder, TracedCommunicator } from "./traced-communicator.ts";

/** One turn of each kind, of every rank of the plan, without data. */
export function sketchTrace(plans: RankPlans, now: () => Seconds): Trace {
  const count = ranks(plans.plan);
  const shards = Array.from({ length: count }, (_, rank) => sketchShard(plans, rank, count, now));
  return { shards, seed: plans.seed };
}

function sketchShard(
  plans: RankPlans,
  number: number,
  count: number,
  now: () => Seconds,
): TraceShard {
  const { globalBatch, sequence } = plans.plan;
  let slept = 0;
  const clock = (): Seconds => now() + slept;
  const list = new EventList(number);
  const recorder = new TraceRecorder(list, clock);
  const world = Array.from({ length: count }, (_, r) => r);
  const communicator = new TracedCommunicator(number, world, recorder, undefined);
  const { rank } = buildRank(plans, communicator, clock, (seconds) => (slept += seconds));
  const tokens = new Int32Array(globalBatch * (sequence + 1));
  recorder.turn("train");
  rank.train(tokens, 1, 0);
  // The first step is not like those that follow: its code is compiled meanwhile.
  list.forgetTurns();
  recorder.turn("train");
  rank.train(tokens, 2, 0);
  recorder.turn("evaluate");
  rank.evaluate(tokens);
  return list.shard();
}

/**
 * Every rank talks to every other at once, as over a switch: the fewest steps. An all-reduce is one
 * exchange of whole buffers (one-shot) or a direct reduce-scatter and a direct all-gather
 * (two-shot).
 */
import { type CollectivePlan, PlanBuilder, type PlanHead, checkRanks } from "./plan.ts";

/** A step in which each ordered pair has a transfer; `chunk` says of which chunk, or -1 for none. */
function exchange(
  builder: PlanBuilder,
  ranks: number,
  chunk: (source: number, target: number) => number,
  reduce: boolean,
): void {
  for (let shift = 1; shift < ranks; shift++) {
    for (let source = 0; source < ranks; source++) {
      const target = (source + shift) % ranks;
      const c = chunk(source, target);
      if (c >= 0) builder.add(source, target, c, 1, reduce);
    }
  }
  if (ranks > 1) builder.step();
}

function start(operation: PlanHead["operation"], algorithm: string, ranks: number, chunks: number) {
  checkRanks(ranks);
  return new PlanBuilder({ operation, algorithm, ranks, chunks }, ranks * ranks);
}

/** One-shot all-reduce: each rank sends its whole buffer to each; 1 step, n - 1 buffers sent. */
export function oneShotAllReduce(ranks: number): CollectivePlan {
  const builder = start("all-reduce", "one-shot", ranks, 1);
  exchange(builder, ranks, () => 0, true);
  return builder.finish();
}

/** Two-shot all-reduce: 2 steps, 2 (n - 1) / n of the buffer sent. */
export function twoShotAllReduce(ranks: number): CollectivePlan {
  const builder = start("all-reduce", "two-shot", ranks, ranks);
  exchange(builder, ranks, (_, target) => target, true);
  exchange(builder, ranks, (source) => source, false);
  return builder.finish();
}

/** Direct reduce-scatter: 1 step. */
export function directReduceScatter(ranks: number): CollectivePlan {
  const builder = start("reduce-scatter", "direct", ranks, ranks);
  exchange(builder, ranks, (_, target) => target, true);
  return builder.finish();
}

/** Direct all-gather: 1 step. */
export function directAllGather(ranks: number): CollectivePlan {
  const builder = start("all-gather", "direct", ranks, ranks);
  exchange(builder, ranks, (source) => source, false);
  return builder.finish();
}

/** Direct all-to-all: 1 step. */
export function directAllToAll(ranks: number): CollectivePlan {
  const builder = start("all-to-all", "direct", ranks, ranks * ranks);
  exchange(builder, ranks, (source, target) => source * ranks + target, false);
  return builder.finish();
}

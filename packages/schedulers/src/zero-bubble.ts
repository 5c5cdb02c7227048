/**
 * Zero-bubble schedules that split the backward (Qi et al., Zero Bubble Pipeline Parallelism, ICLR
 * 2024): the gradient of the input, I, is on the critical path; the gradient of the weights, W, is
 * not and fills bubbles. A rank warms up with forwards, then alternates F and I with each W a fixed
 * number of backwards late, then drains.
 *
 * ZB-H1 (§2.2) keeps 1F1B's memory, P microbatches, and leaves (P−1)(F+I−W) idle inside a rank.
 * ZB-H2 (§2.3) warms up twice as far, holds 2P−1 microbatches and, for F = I = W, is never idle
 * between a rank's first and last action; the optimizer step must then not synchronise all ranks.
 * Interleaved zero bubble is torch's ScheduleInterleavedZeroBubble; with one chunk it is ZB-H1.
 */
import { kindCode } from "./action.ts";
import type { SingleStageOptions } from "./gpipe.ts";
import { type InterleavedOptions, checkGroupSize, interleavedOrder } from "./interleaved.ts";
import { loopBuilder, checkCounts } from "./schedule-builder.ts";
import type { Schedule } from "./schedule.ts";

/** ZB-H1: 1F1B's peak memory, a third of its bubble when F = I = W. */
export function zbH1(o: SingleStageOptions): Schedule {
  checkCounts("zb-h1", { ranks: o.ranks, microbatches: o.microbatches });
  return split("zb-h1", { ...o, chunks: 1 }, o.microbatches, 1);
}

/** ZB-H2: twice the memory of ZB-H1, no bubble inside a rank when F = I = W. */
export function zbH2(o: SingleStageOptions): Schedule {
  checkCounts("zb-h2", { ranks: o.ranks, microbatches: o.microbatches });
  return split("zb-h2", { ...o, chunks: 1 }, o.microbatches, 2);
}

/**
 * Interleaved zero bubble, in torch's order.
 * @throws TriremeError `SCHEDULE` on microbatches that do not fall into groups, as `interleaved`.
 */
export function interleavedZeroBubble(o: InterleavedOptions): Schedule {
  const { ranks, chunks, microbatches } = o;
  checkCounts("interleaved-zero-bubble", { ranks, chunks, microbatches });
  const groupSize = chunks === 1 ? microbatches : checkGroupSize("interleaved-zero-bubble", o);
  return split("interleaved-zero-bubble", o, groupSize, 1);
}

/** @param depth Forwards by which the warm-up grows, and backwards by which W waits, per rank. */
function split(name: string, o: InterleavedOptions, groupSize: number, depth: number): Schedule {
  const { ranks, chunks, microbatches } = o;
  const perRank = microbatches * chunks;
  const order = interleavedOrder(microbatches, chunks, groupSize);
  const builder = loopBuilder(name, o, 3);
  for (let r = 0; r < ranks; r++) {
    const backward = (kind: number, k: number): void => {
      const stage = (chunks - 1 - order.chunk[k]!) * ranks + r;
      builder.add(kind, stage, order.microbatch[k]!);
    };
    const warmUp = Math.min(perRank, (chunks - 1) * groupSize + depth * (ranks - 1 - r));
    const late = Math.min(perRank, depth * r);
    let weights = 0;
    for (let k = 0; k < perRank + warmUp; k++) {
      if (k < perRank) builder.add(kindCode.F, order.chunk[k]! * ranks + r, order.microbatch[k]!);
      if (k < warmUp) continue;
      backward(kindCode.I, k - warmUp);
      if (k - warmUp >= late) backward(kindCode.W, weights++);
    }
    while (weights < perRank) backward(kindCode.W, weights++);
    builder.endRow();
  }
  return builder.finish();
}

/**
 * DualPipe (DeepSeek-AI, DeepSeek-V3 Technical Report, 2024, §3.2.1; deepseek-ai/DualPipe):
 * microbatches enter from both ends of the pipeline, so that each rank holds two stages, r of the
 * first direction and P−1−r of the second, and runs forwards of one direction together with
 * backwards of the other (overlapped pairs). Bubble (P/2−1)(F&B + B − 3W), weights twice, P+1
 * activations.
 *
 * DualPipeV (the same repository, "cut in half"): one direction over 2P stages placed as a V.
 */
import { TriremeError } from "@trireme/core";
import { kindCode } from "./action.ts";
import type { SingleStageOptions } from "./gpipe.ts";
import { ScheduleBuilder, checkCounts } from "./schedule-builder.ts";
import { type Schedule, vPlacement } from "./schedule.ts";

const { F, I, W, B } = kindCode;

/**
 * DualPipe. Stages 0..P−1 are the first direction and take microbatches 0..M/2−1; stages P..2P−1
 * the second, with the rest.
 * @throws TriremeError `SCHEDULE` unless P and M are even and M ≥ 2P (P = 1 runs both ends on one rank).
 */
export function dualPipe(o: SingleStageOptions): Schedule {
  const { ranks, microbatches } = o;
  checkCounts("dualpipe", { ranks, microbatches });
  const fits =
    (ranks === 1 || ranks % 2 === 0) && microbatches % 2 === 0 && microbatches >= 2 * ranks;
  if (!fits) {
    const p = ranks === 1 ? 1 : ranks + (ranks % 2);
    const m = Math.max(2 * p, microbatches + (microbatches % 2));
    throw new TriremeError(
      "SCHEDULE",
      `dualpipe needs an even number of ranks and an even number of microbatches, at least twice the ` +
        `ranks; ${ranks} ranks and ${microbatches} microbatches are not, ${p} and ${m} are`,
    );
  }
  const half = microbatches / 2;
  const builder = startBuilder("dualpipe", o, 2);
  if (ranks === 1) {
    writeSingleRank(builder, half);
    return builder.finish();
  }
  for (let r = 0; r < ranks; r++) {
    // The upper half of the ranks sees the two directions with their roles exchanged.
    const upper = r >= ranks / 2;
    const depth = Math.min(r, ranks - 1 - r);
    const here = { stage: r, first: 0 };
    const there = { stage: 2 * ranks - 1 - r, first: half };
    writeRow(builder, upper ? [there, here] : [here, there], {
      ahead: ranks / 2 - depth - 1,
      depth,
      overlaps: half - ranks + depth + 1,
      microbatches: half,
      separateFirst: depth === ranks / 2 - 1,
    });
    builder.endRow();
  }
  return builder.finish();
}

/**
 * DualPipeV: two stages per rank.
 * @throws TriremeError `SCHEDULE` when there are fewer microbatches than stages.
 */
export function dualPipeV(o: SingleStageOptions): Schedule {
  const { ranks, microbatches } = o;
  checkCounts("dualpipe-v", { ranks, microbatches });
  if (microbatches < 2 * ranks) {
    throw new TriremeError(
      "SCHEDULE",
      `dualpipe-v needs at least as many microbatches as stages; ${microbatches} are fewer than ` +
        `2 x ${ranks}, take ${2 * ranks}`,
    );
  }
  const builder = startBuilder("dualpipe-v", o, 1);
  for (let r = 0; r < ranks; r++) {
    writeRow(
      builder,
      [
        { stage: r, first: 0 },
        { stage: 2 * ranks - 1 - r, first: 0 },
      ],
      {
        ahead: ranks - r - 1,
        depth: r,
        overlaps: microbatches - 2 * ranks + r + 1,
        microbatches,
        separateFirst: r === ranks - 1,
      },
    );
    builder.endRow();
  }
  return builder.finish();
}

function startBuilder(name: string, o: SingleStageOptions, directions: 1 | 2): ScheduleBuilder {
  const { ranks, microbatches } = o;
  const stages = 2 * ranks;
  return new ScheduleBuilder(
    {
      name,
      ranks,
      chunks: 2,
      microbatches,
      stages,
      stageRank: vPlacement(ranks, stages),
      directions,
      forwardOnly: false,
    },
    (6 / directions) * ranks * microbatches,
  );
}

/** Both ends on one rank: the directions take turns, each backward beside the other's forward. */
function writeSingleRank(builder: ScheduleBuilder, half: number): void {
  builder.add(F, 0, 0);
  for (let k = 0; k < half; k++) {
    builder.add(F, 1, half + k, 1);
    builder.add(B, 0, k, 2);
    if (k + 1 < half) builder.add(F, 0, k + 1, 1);
    builder.add(B, 1, half + k, k + 1 < half ? 2 : 0);
  }
  builder.endRow();
}

interface Phase {
  readonly stage: number;
  /** The microbatch that it starts with. */
  readonly first: number;
}

interface RowShape {
  /** Distance to the middle (DualPipe) or the last rank (DualPipeV), H−h−1 or P−r−1. */
  readonly ahead: number;
  /** Distance to the end of the pipeline, h or r. */
  readonly depth: number;
  /** Repetitions of the steady step. */
  readonly overlaps: number;
  /** Microbatches of each phase. */
  readonly microbatches: number;
  /** Whether the first pair is run one after the other: its B needs its own F just before. */
  readonly separateFirst: boolean;
}

/** The eight steps of the reference implementation. */
function writeRow(builder: ScheduleBuilder, phases: readonly [Phase, Phase], o: RowShape): void {
  const nextF = [phases[0].first, phases[1].first];
  const nextB = [phases[0].first, phases[1].first];
  const weights: number[] = [];
  let weightsDone = 0;
  const forward = (p: 0 | 1): void => builder.add(F, phases[p].stage, nextF[p]!++);
  const backward = (p: 0 | 1, zeroBubble: boolean): void => {
    const m = nextB[p]!++;
    builder.add(zeroBubble ? I : B, phases[p].stage, m);
    if (zeroBubble) weights.push(phases[p].stage, m);
  };
  const weight = (): void => {
    builder.add(W, weights[weightsDone]!, weights[weightsDone + 1]!);
    weightsDone += 2;
  };
  const pair = (f: 0 | 1, b: 0 | 1): void => {
    builder.add(F, phases[f].stage, nextF[f]!++, 1);
    builder.add(B, phases[b].stage, nextB[b]!++, 2);
  };
  for (let i = 0; i < 2 * o.ahead; i++) forward(0);
  for (let i = 0; i <= o.depth; i++) {
    forward(0);
    forward(1);
  }
  for (let i = 0; i < o.ahead; i++) {
    backward(1, true);
    weight();
    forward(1);
  }
  for (let i = 0; i < o.overlaps; i++) {
    if (i === 0 && o.separateFirst) {
      forward(0);
      backward(1, false);
    } else {
      pair(0, 1);
    }
    pair(1, 0);
  }
  for (let i = 0; i < o.ahead; i++) {
    backward(1, false);
    pair(1, 0);
  }
  // From the middle of this step on, backwards leave their W for the bubble at the end.
  const turn = Math.floor((o.depth + 1) / 2);
  for (let i = 0; i <= o.depth; i++) {
    backward(1, i > turn || (i === turn && o.depth % 2 === 1));
    backward(0, i >= turn);
  }
  for (let i = 0; i < o.ahead; i++) {
    weight();
    backward(0, true);
  }
  while (weightsDone < weights.length) weight();
}

/**
 * Emulation (PrismLLM, arXiv 2605.15617): with a trace, ranks alone give the bits that they gave among
 * all; without, they take the time that they took.
 */
import { expect, test } from "vitest";
import { type EmbeddedRuntimeOptions, embeddedRuntime } from "@trireme/engine";
import { type Timeline, spans } from "@trireme/timeline";
import { expectAlike } from "../emulation.ts";
import { deepSeek, gpt, llama } from "../equality.ts";
import { type Degrees, smallBatch, smallRun } from "../small-run.ts";

test.each([
  [{ dp: 2, pp: 2, schedule: "zb-h1" }, gpt, [[0], [3], [0, 2], [1, 2]]],
  [{ dp: 2, tp: 2, zero: 1, sequenceParallel: true }, llama, [[1], [0, 3]]],
  [{ dp: 4, zero: 3, gradientPrecision: "bf16" }, llama, [[2], [1, 3]]],
  [{ dp: 2, cp: 2, ep: 2 }, deepSeek, [[0], [1, 2]]],
  [{ dp: 2, ep: 2, dispatch: "all-gather" }, deepSeek, [[1]]],
  [
    { cp: 2, pp: 2, vpp: 2, schedule: "dualpipe-v", contextExchange: "all-to-all" },
    gpt,
    [[1], [2, 3]],
  ],
] as const)(
  "ranks of %j alone do what they did among all",
  (plan, form, sets) => expectAlike(plan, form, sets),
  240_000,
);

/** What each half of an action takes. */
const unit = 0.02;

/**
 * Notes by set and rank when the last action of the rank ends, in seconds from the beginning of a step:
 * the least of some steps, because other programs on the machine only ever add to them.
 */
async function measure(
  least: Map<string, number>,
  plan: Degrees,
  ranks: readonly number[],
  options: EmbeddedRuntimeOptions,
): Promise<void> {
  const runtime = embeddedRuntime({ rehearse: { F: unit, I: unit, W: unit }, ...options });
  try {
    await runtime.start(smallRun(plan, { layers: 8 }));
    for (let step = 0; step < 6; step++) {
      const { timeline } = await runtime.step({ step, batch: smallBatch(step), learningRate: 0 });
      for (const [rank, end] of lastEnds(timeline)) {
        const key = `${rank} of ${ranks.join()}`;
        least.set(key, Math.min(end, least.get(key) ?? Infinity));
      }
    }
  } finally {
    await runtime.stop();
  }
}

function lastEnds(timeline: Timeline): ReadonlyMap<number, number> {
  const ends = new Map<number, number>();
  for (const { rank, end } of spans(timeline)) ends.set(rank, Math.max(end, ends.get(rank) ?? 0));
  return ends;
}

/** The largest relative difference between a rank's step among some and among all. */
function worst(
  some: ReadonlyMap<string, number>,
  full: ReadonlyMap<string, number>,
  sets: readonly (readonly number[])[],
): number {
  const differences = sets.flatMap((ranks) =>
    ranks.map((rank) => {
      const among = full.get(`${rank} of 0,1,2,3,4,5,6,7`)!;
      return Math.abs(some.get(`${rank} of ${ranks.join()}`)! / among - 1);
    }),
  );
  console.log(differences.map((d) => d.toFixed(4)).join(" "));
  return Math.max(...differences);
}

test.each([
  [{ pp: 8 }, [[0], [7], [3, 4]]],
  [{ pp: 4, dp: 2, schedule: "zb-h1" }, [[0], [5], [1, 6]]],
  [{ pp: 4, tp: 2, vpp: 2, schedule: "interleaved" }, [[2], [0, 7]]],
  [{ pp: 2, dp: 2, cp: 2, zero: 2, overlapDataParallel: true }, [[5], [0, 1, 2]]],
] as const)(
  "ranks of %j alone take the time that they took among all 8, within 5 %%",
  async (plan, sets) => {
    const [full, some] = [new Map<string, number>(), new Map<string, number>()];
    // On a busy machine both are measured again: what is left of a disturbance is the least of all.
    for (let attempt = 0; attempt < 3; attempt++) {
      await measure(full, plan, [0, 1, 2, 3, 4, 5, 6, 7], {});
      for (const ranks of sets) await measure(some, plan, ranks, { emulate: { ranks } });
      if (worst(some, full, sets) < 0.05) break;
    }
    expect(worst(some, full, sets)).toBeLessThan(0.05);
  },
  240_000,
);

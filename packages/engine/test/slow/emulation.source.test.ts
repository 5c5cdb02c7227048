/**
 * Emulation (PrismLLM, arXiv 2605.15617): with a trace, ranks alone give the bits that they gave among
 * all; without, they take the time that they took.
 */
import { expect, test } from "vitest";
import { type EmbeddedRuntimeOptions, embeddedRuntime } from "@trireme/engine";
import { type Timeline, spans } from "@trireme/timeline";
import { expectAlike } from "../emulation.ts";
import { deepSeek, gpt, llama } from "../equality.ts";
import { unit } from "../rehearsal.ts";
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

const all = [0, 1, 2, 3, 4, 5, 6, 7];

/**
 * When the last action of each rank ends, in seconds from the beginning of a step: medians of some
 * steps, in which each runtime takes its step at the same time, so that what else the machine does
 * meets all of them.
 */
async function medianEnds(
  plan: Degrees,
  options: readonly EmbeddedRuntimeOptions[],
): Promise<ReadonlyMap<number, number>[]> {
  const rehearse = { F: unit, I: unit, W: unit };
  const runtimes = options.map((o) => embeddedRuntime({ rehearse, ...o }));
  const ends = options.map(() => new Map<number, number[]>());
  try {
    for (const runtime of runtimes) await runtime.start(smallRun(plan, { layers: 8 }));
    for (let step = 0; step < 9; step++) {
      const input = { step, batch: smallBatch(step), learningRate: 0 };
      const results = await Promise.all(runtimes.map((runtime) => runtime.step(input)));
      results.forEach(({ timeline }, i) => {
        for (const [rank, end] of lastEnds(timeline)) {
          ends[i]!.set(rank, [...(ends[i]!.get(rank) ?? []), end]);
        }
      });
    }
  } finally {
    await Promise.all(runtimes.map((runtime) => runtime.stop()));
  }
  const median = (of: readonly number[]): number => of.toSorted((a, b) => a - b)[of.length >> 1]!;
  return ends.map((byRank) => new Map([...byRank].map(([rank, of]) => [rank, median(of)])));
}

function lastEnds(timeline: Timeline): ReadonlyMap<number, number> {
  const ends = new Map<number, number>();
  for (const { rank, end } of spans(timeline)) ends.set(rank, Math.max(end, ends.get(rank) ?? 0));
  return ends;
}

test.each([
  [{ pp: 8 }, [[0], [7], [3, 4]]],
  [{ pp: 4, dp: 2, schedule: "zb-h1" }, [[0], [5], [1, 6]]],
  [{ pp: 4, tp: 2, vpp: 2, schedule: "interleaved" }, [[2], [0, 7]]],
  [{ pp: 2, dp: 2, cp: 2, zero: 2, overlapDataParallel: true }, [[5], [0, 1, 2]]],
] as const)(
  "ranks of %j alone take the time that they took among all 8, within 5 %%",
  async (plan, sets) => {
    const [full, ...some] = await medianEnds(plan, [
      {},
      ...sets.map((ranks) => ({ emulate: { ranks } })),
    ]);
    expect([...full!.keys()].toSorted((a, b) => a - b)).toEqual(all);
    some.forEach((ends, i) => {
      expect([...ends.keys()].toSorted((a, b) => a - b)).toEqual(sets[i]);
      for (const [rank, end] of ends) {
        // A busy machine slows eight threads down more than fewer: this is for one that does nothing else.
        const among = full!.get(rank)!;
        expect.soft(end).toBeGreaterThan(0.95 * among);
        expect.soft(end).toBeLessThan(1.05 * among);
      }
    });
  },
  240_000,
);

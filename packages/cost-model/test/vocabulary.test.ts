/** A vocabulary split over the pipeline ranks: what it saves, and what the paper's authors count of it. */
import { defineCluster } from "@trireme/topology";
import { type Plan, defineModel, definePlan } from "@trireme/workload";
import { expect, test } from "vitest";
import { type Cost, estimate } from "@trireme/cost-model";

const cluster = defineCluster({ host: "dgx-a100-80", hosts: 4 });

function cost(vocab: number, o: Partial<Plan>): Cost {
  const m = defineModel({ layers: 32, hidden: 3072, heads: 24, context: 2048, vocab, tied: false });
  const plan = definePlan(m, { pp: 8, globalBatch: 128, fusedLoss: false, ...o });
  const e = estimate({ model: m, plan, cluster, checkMemory: false });
  if (!e.ok) throw new Error(e.reason);
  return e;
}

const ways = ["two-barriers", "one-barrier", "interlaced"] as const;

test.each(ways)("%s: utilisation does not fall as the vocabulary grows", (vocabulary) => {
  const [small, large] = [32_768, 262_144].map((vocab) => cost(vocab, { vocabulary }));
  expect(large!.mfu / small!.mfu).toBeGreaterThan(0.95);
  // arXiv 2411.05288, Table 5: 46.2 % and 25.2 % with the whole of it on the last stage.
  expect(cost(262_144, {}).mfu / cost(32_768, {}).mfu).toBeLessThan(0.65);
});

test("causes sum to the step, and memory differs by the positions and the microbatches in flight alone", () => {
  for (const vocabulary of ways) {
    const e = cost(131_072, { vocabulary });
    const sum = Object.values<number>({ ...e.breakdown }).reduce((a, b) => a + b);
    expect(sum).toBeCloseTo(e.step, 9);
    const states = e.memory.ranks.map((r) => r.weights);
    expect(Math.max(...states) / Math.min(...states)).toBeLessThan(1.02);
  }
});

test("rank r of p holds p − r microbatches and one for each barrier, or half of p more interlaced", () => {
  const base = cost(32_768, {}).memory.ranks;
  const one = cost(32_768, { globalBatch: 1 }).memory.ranks;
  const kept = (o: Partial<Plan>): number[] =>
    cost(32_768, o).memory.ranks.map((r, i) => r.activations / one[i]!.activations);
  expect(base.map((r, i) => r.activations / one[i]!.activations)).toEqual([8, 7, 6, 5, 4, 3, 2, 1]);
  expect(kept({ vocabulary: "one-barrier" })).toEqual([9, 8, 7, 6, 5, 4, 3, 2]);
  expect(kept({ vocabulary: "two-barriers" })).toEqual([10, 9, 8, 7, 6, 5, 4, 3]);
  expect(kept({ vocabulary: "interlaced" })).toEqual([12, 11, 10, 9, 8, 7, 6, 5]);
});

test("the ramp has no passes over the vocabulary: they add as much to every microbatch", () => {
  const at = (globalBatch: number): number =>
    cost(262_144, { vocabulary: "two-barriers", globalBatch }).step -
    cost(32_768, { vocabulary: "two-barriers", globalBatch }).step;
  // The update of the larger table comes once.
  const each = (at(128) - at(64)) / 64;
  expect(at(32) - 32 * each).toBeCloseTo(at(128) - 128 * each, 9);
  expect(at(32) - 32 * each).toBeLessThan(0.1 * at(32));
});

test("between hosts an interlaced pipeline waits for its exchanges, and barriers hide them", () => {
  const exposed = (vocabulary: Plan["vocabulary"]): number => {
    const e = cost(32_768, {
      pp: 32,
      overlapPointToPoint: true,
      ...(vocabulary === undefined ? {} : { vocabulary }),
    });
    return e.breakdown.pointToPoint / e.step;
  };
  expect(exposed(undefined)).toBe(0);
  expect(exposed("interlaced")).toBeGreaterThan(exposed("two-barriers"));
});

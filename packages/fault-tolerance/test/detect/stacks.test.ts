import { createRng } from "@trireme/core";
import {
  type SharedGroup,
  aggregateStacks,
  failSlowRounds,
  failSlowVerdict,
  individualScore,
  overEviction,
  relativeScores,
  sharedGroup,
  stragglers,
} from "@trireme/fault-tolerance";
import { defineMesh, groupOf } from "@trireme/topology";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const waiting = "main\n train_step\n  reduce_scatter_grads\n   wait";
const mesh = defineMesh([
  { name: "tp", size: 2 },
  { name: "pp", size: 4 },
  { name: "dp", size: 8 },
]);

describe("stack-trace aggregation", () => {
  it("takes the large groups as healthy and the small ones as outliers", () => {
    const traces = Array.from({ length: 64 }, (_, rank) => ({
      rank,
      stack: rank === 30 ? "main\n isend" : rank === 31 ? "main\n irecv" : waiting,
    }));
    const { groups, outliers } = aggregateStacks(traces);
    expect(groups.map((each) => each.ranks.length)).toEqual([62, 1, 1]);
    expect(outliers).toEqual([30, 31]);
  });

  it("takes pipeline stages that wait in different places as healthy", () => {
    const traces = Array.from({ length: 64 }, (_, rank) => ({
      rank,
      stack: rank === 5 ? "main\n forward\n cuda" : `main\n recv of stage ${(rank >> 1) % 4}`,
    }));
    expect(aggregateStacks(traces).outliers).toEqual([5]);
    expect(aggregateStacks([])).toEqual({ groups: [], outliers: [] });
    expect(() => aggregateStacks([], 0)).toThrow("healthy = 0");
  });

  it("finds the parallel group that the outliers share, whichever axis it runs along", () => {
    fc.assert(
      fc.property(
        fc.constantFrom("tp", "pp", "dp"),
        fc.integer({ min: 0, max: 63 }),
        (axis, rank) => {
          const group = groupOf(mesh, rank, axis);
          expect(sharedGroup(mesh, group)).toEqual({ axes: [axis], ranks: group });
        },
      ),
    );
    expect(sharedGroup(mesh, [])).toBeUndefined();
    expect(sharedGroup(mesh, [9])).toEqual({ axes: [], ranks: [9] });
    // Ranks 0 and 3 share no axis alone: tensor and pipeline together do, at 8 ranks.
    expect(sharedGroup(mesh, [0, 3])).toMatchObject({ axes: ["tp", "pp"] });
  });

  it("evicts the hosts of that group, and says which have no evidence against them", () => {
    // ByteRobust's case: a pipeline of 8 hosts, of which one or two stand out.
    const job = defineMesh([
      { name: "tp", size: 8 },
      { name: "pp", size: 8 },
      { name: "dp", size: 150 },
    ]);
    expect(job.ranks).toBe(9600);
    const hostOfRank = (rank: number): number => rank >> 3;
    const stuck = [...groupOf(job, 64 * 7 + 8, "tp"), ...groupOf(job, 64 * 7 + 24, "tp")];
    const eviction = overEviction(job, stuck, hostOfRank)!;
    expect(eviction.hosts).toEqual([56, 57, 58, 59, 60, 61, 62, 63]);
    expect(eviction.suspects).toEqual([57, 59]);
    expect(overEviction(job, [], hostOfRank)).toBeUndefined();
  });
});

describe("fail-slow detection", () => {
  const groups = [0, 8, 16].map((rank): SharedGroup => ({
    axes: ["pp"],
    ranks: groupOf(mesh, rank, "pp"),
  }));

  it("evicts the group flagged in most of five rounds", () => {
    const [a, b, c] = groups;
    expect(failSlowRounds).toBe(5);
    expect(failSlowVerdict([a, b, a, c])).toBeUndefined();
    expect(failSlowVerdict([a, b, a, c, a])).toEqual({ group: a, flags: 3 });
    expect(failSlowVerdict([a, undefined, a, undefined, b])).toEqual({ group: a, flags: 2 });
    expect(failSlowVerdict([a, a, b, b, c])).toBeUndefined();
    expect(failSlowVerdict([undefined, undefined, undefined, undefined, a])).toBeUndefined();
    expect(failSlowVerdict(Array.from({ length: 5 }, () => undefined))).toBeUndefined();
    expect(() => failSlowVerdict([], 0)).toThrow("0 rounds");
  });

  it("finds a group that is flagged in six rounds of ten, through the noise of the others", () => {
    const rng = createRng(11);
    let right = 0;
    let wrong = 0;
    for (let trial = 0; trial < 500; trial++) {
      const rounds = Array.from({ length: 5 }, () =>
        rng.float() < 0.6 ? groups[0] : rng.float() < 0.5 ? groups[1 + rng.integer(2)] : undefined,
      );
      const verdict = failSlowVerdict(rounds);
      if (verdict?.group === groups[0]) right++;
      else if (verdict !== undefined) wrong++;
    }
    // Measured 0.87 and 0.02; the binomial's error over 500 trials is 0.015.
    expect(right / 500).toBeGreaterThan(0.8);
    expect(wrong / 500).toBeLessThan(0.06);
  });
});

describe("straggler scores", () => {
  it("of times × (r + 1) are 1, 1/2, 1/3, 1/4 (NVIDIA)", () => {
    const scores = relativeScores(
      [1, 3].map((t) => ({ name: "k", median: [t, 2 * t, 3 * t, 4 * t] })),
    );
    for (const rank of [0, 1, 2, 3]) expect(scores[rank]).toBeCloseTo(1 / (rank + 1), 12);
    expect(stragglers(scores)).toEqual([3, 2, 1]);
    expect([...relativeScores([{ name: "k", median: [9] }])]).toEqual([1]);
    expect(relativeScores([]).length).toBe(0);
  });

  it("weigh kernels by count × average of the rank", () => {
    const scores = relativeScores([
      { name: "large", median: [1, 1], average: [3, 3], count: [1, 1] },
      { name: "small", median: [1, 2], average: [1, 1], count: [1, 1] },
    ]);
    expect(scores[1]).toBeCloseTo((3 * 1 + 1 * 0.5) / 4, 12);
    expect(() => relativeScores([{ name: "k", median: [0] }])).toThrow(
      "median = 0 must be above 0 s",
    );
  });

  it("of a rank alone hold it against its own best", () => {
    expect(individualScore(2, 4)).toBe(0.5);
    expect(individualScore(5, 4)).toBe(1);
    expect(() => individualScore(0, 1)).toThrow("both must be above 0");
  });
});

import { createRng } from "@trireme/core";
import {
  type PairwiseResults,
  type SelfCheckStep,
  type StopOutcome,
  type World,
  bitwiseAlignment,
  dualPhaseReplay,
  pairwiseStep,
  replayVerdict,
  selfCheckStep,
  selfChecks,
  stopTimeLadder,
  stopTimeStep,
  uniqueReplicas,
} from "@trireme/fault-tolerance";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

/** Runs the two rounds against hosts of which some are bad: a world fails when it holds one. */
function pairwise(hosts: readonly number[], bad: ReadonlySet<number>) {
  const fails = (batches: readonly (readonly World[])[]): World[] =>
    batches.flat().filter((world) => world.some((host) => bad.has(host)));
  const results: { first?: World[]; second?: World[] } = {};
  for (let rounds = 0; ; rounds++) {
    const step = pairwiseStep(hosts, results);
    if (step.kind === "done") return { ...step, rounds };
    if (step.round === 1) results.first = fails(step.batches);
    else results.second = fails(step.batches);
  }
}

describe("Acme's pairwise test", () => {
  it("finds exactly the bad hosts in two rounds, so long as one world is clean", () => {
    fc.assert(
      fc.property(
        fc.uniqueArray(fc.integer({ min: 0, max: 999 }), { minLength: 2, maxLength: 41 }),
        fc.integer(),
        fc.double({ min: 0, max: 0.7, noNaN: true }),
        (hosts, seed, share) => {
          const rng = createRng(seed);
          const bad = new Set(hosts.filter(() => rng.float() < share));
          const result = pairwise(hosts, bad);
          expect(result.rounds).toBeLessThanOrEqual(2);
          if (result.undecided.length > 0) {
            expect(result.bad).toEqual([]);
            expect(result.undecided.length).toBe(hosts.length);
          } else expect(result.bad).toEqual([...bad].toSorted((a, b) => a - b));
        },
      ),
    );
  });

  it("uses a good host once in a batch, and every world has two hosts or three", () => {
    const hosts = [1, 2, 3, 4, 5, 6, 7];
    const first = pairwiseStep(hosts, {});
    expect(first).toEqual({
      kind: "test",
      round: 1,
      batches: [
        [
          [1, 2],
          [3, 4],
          [5, 6, 7],
        ],
      ],
    });
    const results = {
      first: [
        [1, 2],
        [5, 6, 7],
      ],
    };
    expect(pairwiseStep(hosts, results)).toEqual({
      kind: "test",
      round: 2,
      batches: [
        [
          [1, 3],
          [2, 4],
        ],
        [
          [5, 3],
          [6, 4],
        ],
        [[7, 3]],
      ],
    });
  });

  it("says when it cannot decide, and refuses results of other worlds", () => {
    expect(pairwiseStep([4], {})).toEqual({ kind: "done", bad: [], undecided: [4] });
    expect(pairwiseStep([], {})).toEqual({ kind: "done", bad: [], undecided: [] });
    expect(pairwiseStep([1, 2], { first: [[1, 2]] })).toMatchObject({ undecided: [1, 2] });
    expect(() => pairwiseStep([1, 1], {})).toThrow("name a host twice");
    expect(() => pairwiseStep([1, 2], { first: [[2, 1]] })).toThrow("[2, 1] was not asked for");
  });
});

describe("MegaScale's self-checks", () => {
  /** Runs the ladder on hosts that each fail at one check, or none. */
  const climb = (
    sets: readonly (readonly number[])[],
    failsAt: ReadonlyMap<number, string>,
  ): { asked: SelfCheckStep[]; last: SelfCheckStep } => {
    const alone: number[][] = [];
    const neighbours: PairwiseResults[] = sets.map(() => ({}));
    const asked: SelfCheckStep[] = [];
    for (;;) {
      const step = selfCheckStep(sets, { alone, neighbours });
      if (step.kind === "done") return { asked, last: step };
      asked.push(step);
      if (step.kind === "run") {
        alone.push(step.hosts.filter((host) => failsAt.get(host) === step.check));
        continue;
      }
      for (const [i, batches] of step.sets.entries()) {
        if (batches.length === 0) continue;
        const failed = batches
          .flat()
          .filter((world) => world.some((host) => failsAt.get(host) === step.check));
        const before = neighbours[i]!;
        neighbours[i] = before.first ? { first: before.first, second: failed } : { first: failed };
      }
    }
  };

  it("block the hosts that fail, each at its own check, and no neighbour of theirs", () => {
    fc.assert(
      fc.property(fc.integer(), (seed) => {
        const rng = createRng(seed);
        const sets = [0, 1, 2].map((s) => Array.from({ length: 8 }, (_, i) => 8 * s + i));
        const failsAt = new Map<number, string>();
        for (let i = 0; i < 3; i++) {
          failsAt.set(rng.integer(24), selfChecks[rng.integer(selfChecks.length)]!);
        }
        const { asked, last } = climb(sets, failsAt);
        expect(last).toEqual({
          kind: "done",
          block: [...failsAt.keys()].toSorted((a, b) => a - b),
          undecided: [],
        });
        expect(asked.length).toBeLessThanOrEqual(5);
      }),
    );
  });

  it("test fewer hosts on every rung, and tell who has no neighbour left", () => {
    const { asked, last } = climb([[0, 1], [2]], new Map([[1, "nic-to-nic"]]));
    expect(asked.map((step) => (step.kind === "run" ? step.hosts.length : 0))).toEqual([3, 3, 2]);
    expect(last).toEqual({ kind: "done", block: [1], undecided: [0, 2] });
    expect(() => selfCheckStep([[0]], { alone: [[9]] })).toThrow("host 9 was not in the check");
    expect(() => selfCheckStep([[0]], { alone: [[], [], [], []] })).toThrow("there are 3");
  });
});

describe("ByteRobust's stop-time ladder", () => {
  it("goes from tests to a second try, older code, replay, and people", () => {
    const outcomes: StopOutcome[] = [];
    const asked: string[] = [];
    for (;;) {
      const step = stopTimeStep("crash", outcomes);
      if (step.kind !== "run") {
        expect(step).toEqual({ kind: "people" });
        break;
      }
      asked.push(step.rung);
      outcomes.push(
        step.rung === "reattempt" || step.rung === "roll-back"
          ? { rung: step.rung, recurred: true }
          : { rung: step.rung, faulty: [] },
      );
    }
    expect(asked).toEqual([
      "gpu-diagnostics",
      "intra-host-all-to-all",
      "inter-host-all-gather",
      "reattempt",
      "roll-back",
      "dual-phase-replay",
    ]);
    expect(stopTimeLadder("nan")[3]).toBe("bitwise-alignment");
  });

  it("evicts what a test names, and ends when a fault does not come again", () => {
    const clean = { rung: "gpu-diagnostics", faulty: [] } as const;
    expect(stopTimeStep("hang", [clean, { rung: "intra-host-all-to-all", faulty: [3] }])).toEqual({
      kind: "evict",
      hosts: [3],
      by: "intra-host-all-to-all",
    });
    const tests = stopTimeLadder("hang")
      .slice(0, 3)
      .map((rung) => ({ ...clean, rung }) as StopOutcome);
    expect(stopTimeStep("hang", [...tests, { rung: "reattempt", recurred: false }])).toEqual({
      kind: "resolved",
      by: "reattempt",
    });
    expect(() => stopTimeStep("nan", [{ rung: "reattempt", recurred: true }])).toThrow(
      "ladder for nan has gpu-diagnostics there",
    );
  });
});

describe("bitwise alignment", () => {
  const output = (...values: number[]): Float32Array => Float32Array.from(values);

  it("suspects the hosts whose output differs in a bit", () => {
    const outputs = [0, 1, 2, 3].map((i) => ({
      hosts: [2 * i, 2 * i + 1],
      output: output(1, i === 2 ? 2.0000002 : 2, Number.NaN),
    }));
    expect(bitwiseAlignment(outputs)).toEqual({ ok: true, suspects: [4, 5] });
    expect(bitwiseAlignment(outputs.slice(0, 2))).toEqual({ ok: true, suspects: [] });
  });

  it("holds −0 against 0, and a half against nothing unless the right output is known", () => {
    const two = [
      { hosts: [0], output: output(0) },
      { hosts: [1], output: output(-0) },
    ];
    expect(bitwiseAlignment(two)).toMatchObject({ ok: false });
    expect(bitwiseAlignment(two, output(0))).toEqual({ ok: true, suspects: [1] });
    expect(bitwiseAlignment([])).toEqual({ ok: true, suspects: [] });
    expect(() => bitwiseAlignment(two, output(0, 1))).toThrow("hosts [0] gave 4 bytes, not 8");
  });
});

describe("dual-phase replay", () => {
  it("names one machine if and only if m ≤ n, and the faulty one always among them", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 9 }),
        fc.integer({ min: 1, max: 24 }),
        fc.integer({ min: 1, max: 24 }),
        (pipeline, data, some) => {
          const replicas = divisorNear(data, some);
          const plan = dualPhaseReplay({ pipeline, data, replicas });
          expect(plan.unique).toBe(plan.groupSize <= plan.groups);
          let most = 0;
          for (let faulty = 0; faulty < plan.machines; faulty++) {
            const failed = (groups: readonly (readonly number[])[]): number[] =>
              groups.flatMap((group, i) => (group.includes(faulty) ? [i] : []));
            const verdict = replayVerdict(plan, failed(plan.horizontal), failed(plan.vertical));
            expect(verdict.ok && verdict.suspects.includes(faulty)).toBe(true);
            if (verdict.ok) most = Math.max(most, verdict.suspects.length);
          }
          expect(most === 1).toBe(plan.unique);
          expect(most).toBe(Math.ceil(plan.groupSize / plan.groups));
        },
      ),
      { numRuns: 60 },
    );
  });

  it("chooses the largest groups that stay unique", () => {
    expect(uniqueReplicas(8, 32)).toBe(2);
    expect(dualPhaseReplay({ pipeline: 8, data: 32, replicas: 2 })).toMatchObject({
      groupSize: 16,
      groups: 16,
      unique: true,
    });
    expect(uniqueReplicas(8, 4)).toBeUndefined();
    expect(uniqueReplicas(1, 1)).toBe(1);
  });

  it("does not guess when other than one group fails in a phase", () => {
    const plan = dualPhaseReplay({ pipeline: 2, data: 4 });
    expect(replayVerdict(plan, [], [])).toMatchObject({ ok: false });
    expect(replayVerdict(plan, [0, 1], [0])).toMatchObject({
      reason: "2 groups failed in the first phase and 1 in the second: not one faulty machine",
    });
    expect(() => replayVerdict(plan, [4], [0])).toThrow("groups are 0..3");
    // Group 0 has machines 0 and 1; group 3 of the second phase has 3 and 7.
    expect(replayVerdict(plan, [0], [3])).toMatchObject({ ok: false });
    expect(() => dualPhaseReplay({ pipeline: 2, data: 6, replicas: 4 })).toThrow("below is 3");
    expect(() => dualPhaseReplay({ pipeline: 0, data: 6 })).toThrow("pipeline = 0");
  });
});

function divisorNear(n: number, wanted: number): number {
  let k = Math.min(n, wanted);
  while (n % k !== 0) k--;
  return k;
}

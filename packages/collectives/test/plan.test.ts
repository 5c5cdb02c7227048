import { readFileSync } from "node:fs";
import {
  type CollectivePlan,
  PlanBuilder,
  bruckRounds,
  chunkBytes,
  closedFormCost,
  createPlan,
  doubleBinaryTree,
  pairwiseAllToAllV,
  ringAllGather,
  ringAllReduce,
  treeAllReduce,
  verify,
} from "@trireme/collectives";
import { TriremeError } from "@trireme/core";
import fc from "fast-check";
import { expect, test } from "vitest";
import { variants } from "./plan-variants.ts";

/** The plan with one row changed. */
function changed(
  plan: CollectivePlan,
  row: number,
  change: Partial<Record<string, number>>,
): CollectivePlan {
  const copy = {
    ...plan,
    source: plan.source.slice(),
    target: plan.target.slice(),
    chunk: plan.chunk.slice(),
    reduce: plan.reduce.slice(),
  };
  for (const key of ["source", "target", "chunk", "reduce"] as const) {
    if (change[key] !== undefined) copy[key][row] = change[key];
  }
  return copy;
}

test("every algorithm verifies for 1 to 33 ranks", () => {
  for (let ranks = 1; ranks <= 33; ranks++) {
    for (const options of variants(ranks)) {
      expect([options, verify(createPlan(options))]).toMatchObject([options, { ok: true }]);
    }
  }
});

test("steps and bytes of plans are those of the closed forms", () => {
  const busiest = new Set(["tree", "folded", "nvls", "sharp"]);
  for (const ranks of [2, 3, 4, 6, 8, 16, 27]) {
    for (const options of variants(ranks)) {
      const plan = createPlan(options);
      const { operation, algorithm } = plan;
      const bytes = 1_000_000;
      const cost = closedFormCost(operation, algorithm, {
        ranks,
        bytes,
        alpha: 1,
        beta: 1,
        base: options.base ?? 2,
        pipeline: algorithm === "ring" ? 4 : 1,
      });
      const verified = verify(plan, bytes);
      if (cost === undefined || !verified.ok || busiest.has(algorithm)) continue;
      expect([options, plan.steps]).toEqual([options, cost.steps]);
      if (operation === "barrier") continue;
      // The busiest rank sends what the form says; folding makes one rank send less than the form.
      const most = Math.max(
        ...verified.sent.subarray(0, ranks),
        ...verified.received.subarray(0, ranks),
      );
      const folds = /doubling|rabenseifner/.test(algorithm) && !Number.isInteger(Math.log2(ranks));
      const pipeline = operation === "broadcast" && algorithm === "ring";
      if (folds || pipeline) expect(most).toBeLessThanOrEqual(cost.sent * (1 + 1e-12));
      else expect([options, most]).toEqual([options, expect.closeTo(cost.sent, 3)]);
    }
  }
});

test("the ring of four sends the chunks of the published convention", () => {
  const sends = (plan: CollectivePlan): number[][] =>
    Array.from({ length: plan.steps }, (_, step) =>
      Array.from(plan.chunk.subarray(plan.starts[step], plan.starts[step + 1])),
    );
  expect(sends(ringAllReduce(4))).toEqual([
    [0, 1, 2, 3],
    [3, 0, 1, 2],
    [2, 3, 0, 1],
    [1, 2, 3, 0],
    [0, 1, 2, 3],
    [3, 0, 1, 2],
  ]);
});

test("Bruck's rounds and blocks are the published ones", () => {
  const rounds = (n: number): number[][] => bruckRounds(n).map((r) => [r.distance, r.blocks]);
  expect(rounds(4)).toEqual([
    [1, 2],
    [2, 2],
  ]);
  expect(rounds(5)).toEqual([
    [1, 2],
    [2, 2],
    [4, 1],
  ]);
  expect(rounds(6)).toEqual([
    [1, 3],
    [2, 2],
    [4, 2],
  ]);
  expect(rounds(7)).toEqual([
    [1, 3],
    [2, 3],
    [4, 3],
  ]);
  expect(rounds(8)).toEqual([
    [1, 4],
    [2, 4],
    [4, 4],
  ]);
  const totals = [3, 4, 5, 6, 7, 8, 9].map((n) => rounds(n).reduce((sum, [, b]) => sum + b!, 0));
  expect(totals).toEqual([2, 4, 5, 7, 9, 12, 13]);
});

test("double binary trees equal those NCCL's own function gives", () => {
  // Made by compiling NCCL's ncclGetDtree (src/graph/trees.cc, BSD 3-clause) and printing its output.
  const vectors = JSON.parse(
    readFileSync(new URL("./vectors/nccl-double-tree.json", import.meta.url), "utf8"),
  ) as Record<string, number[][][]>;
  for (const [n, expected] of Object.entries(vectors)) {
    const trees = doubleBinaryTree(Number(n));
    // For one rank the vectors hold one empty place for both trees.
    const ours = trees[0].map((_, rank) =>
      trees.map((tree) => [tree[rank]!.parent, ...tree[rank]!.children]),
    );
    expect(ours, `n = ${n}`).toEqual(expected);
  }
});

test("double binary trees keep their invariants up to 199 ranks", () => {
  for (let n = 1; n <= 199; n++) {
    const trees = doubleBinaryTree(n);
    for (const tree of trees) {
      expect(tree.filter((node) => node.parent === -1)).toHaveLength(1);
      for (const [rank, { parent, children }] of tree.entries()) {
        const linked =
          (parent < 0 || tree[parent]!.children.includes(rank)) &&
          children.every((child) => child < 0 || tree[child]!.parent === rank);
        if (!linked) throw new Error(`n = ${n}: rank ${rank} and its neighbours disagree`);
      }
      let reached = 0;
      const stack = [tree.findIndex((node) => node.parent === -1)];
      for (let rank = stack.pop(); rank !== undefined; rank = stack.pop()) {
        reached++;
        stack.push(...tree[rank]!.children.filter((child) => child >= 0));
      }
      expect(reached).toBe(n);
    }
    const inner = (tree: (typeof trees)[number], rank: number): boolean =>
      tree[rank]!.children.some((child) => child >= 0);
    const both = trees[0].flatMap((_, r) => (inner(trees[0], r) && inner(trees[1], r) ? [r] : []));
    expect(
      both.filter((rank) => !(n % 2 === 1 && rank === 0)),
      `n = ${n}`,
    ).toEqual([]);
  }
});

test("several rings share the buffer, each in its order", () => {
  const orders = [
    [0, 1, 2, 3, 4],
    [0, 2, 4, 1, 3],
  ];
  const plan = ringAllReduce(5, { orders });
  expect(verify(plan, 1000)).toMatchObject({ ok: true, steps: 8 });
  const verified = verify(plan, 1000);
  if (!verified.ok) throw new Error(verified.reason);
  expect(verified.links.size).toBe(10);
  expect(() => ringAllReduce(3, { order: [0, 1, 1] })).toThrow(
    "ring order of 3 ranks (2 different) must name each of 0..2 once",
  );
});

/** The obvious way: counts of every rank's contribution in every chunk of an all-reduce. */
function holds(plan: CollectivePlan): boolean {
  const { ranks, chunks, steps, starts, source, target, chunk, count, reduce } = plan;
  const cells = (): number[][][] =>
    Array.from({ length: ranks }, (_, r) =>
      Array.from({ length: chunks }, () =>
        Array.from({ length: ranks }, (__, i) => Number(i === r)),
      ),
    );
  let now = cells();
  for (let step = 0; step < steps; step++) {
    const next = structuredClone(now);
    const writes = new Map<string, number[]>();
    for (let row = starts[step]!; row < starts[step + 1]!; row++) {
      const [from, to] = [source[row]!, target[row]!];
      if (from === to) return false;
      for (let c = chunk[row]!; c < chunk[row]! + count[row]!; c++) {
        const sent = now[from]![c]!;
        const kept = next[to]![c]!;
        next[to]![c] = reduce[row] === 1 ? kept.map((x, i) => x + sent[i]!) : [...sent];
        writes.set(`${to} ${c}`, [...(writes.get(`${to} ${c}`) ?? []), reduce[row]!]);
        if (next[to]![c]!.some((x) => x > 1)) return false;
      }
    }
    for (const kinds of writes.values()) if (kinds.length > 1 && kinds.includes(0)) return false;
    now = next;
  }
  return now.every((rank) => rank.every((cell) => cell.every((x) => x === 1)));
}

test("a changed row is found out exactly when counting by hand finds it out", () => {
  let broken = 0;
  fc.assert(
    fc.property(
      fc.constantFrom("ring", "tree", "rabenseifner", "two-shot"),
      fc.integer({ min: 2, max: 9 }),
      fc.nat(),
      fc.constantFrom("source", "target", "chunk", "reduce"),
      fc.nat(),
      (algorithm, ranks, at, key, to) => {
        const plan = createPlan({ operation: "all-reduce", algorithm, ranks });
        const row = at % plan.source.length;
        fc.pre(plan.count[row] === 1);
        const limit = { source: ranks, target: ranks, chunk: plan.chunks, reduce: 2 }[key];
        const other = changed(plan, row, { [key]: to % limit });
        const { ok } = verify(other);
        expect(ok).toBe(holds(other));
        if (!ok) broken++;
      },
    ),
    { numRuns: 500 },
  );
  expect(broken).toBeGreaterThan(100);
});

test("reasons name the step, the ranks and the chunk", () => {
  const plan = ringAllReduce(4);
  const reason = (broken: CollectivePlan): string => {
    const verified = verify(broken);
    return verified.ok ? "ok" : verified.reason;
  };
  expect(reason(changed(plan, 5, { chunk: 2 }))).toBe(
    "in the end chunk 0 of rank 0 holds the data of ranks 2, 3, must hold that of all 4",
  );
  expect(reason(changed(plan, 0, { target: 0 }))).toContain("a rank sends to itself");
  expect(reason(changed(plan, 0, { chunk: 4 }))).toContain("chunks are 0..3");
  expect(reason(changed(ringAllGather(4), 4, { chunk: 1 }))).toContain("does not hold chunk 1");
  expect(reason(changed(plan, 23, { reduce: 1 }))).toMatch(/chunk \d would hold rank \d twice/);
  const empty = new PlanBuilder({
    operation: "broadcast",
    algorithm: "none",
    ranks: 2,
    chunks: 1,
    root: 0,
  });
  expect(reason(empty.finish())).toBe(
    "in the end chunk 0 of rank 1 holds nothing, must hold that of rank 0",
  );
});

test("an all-to-all with counts sends nothing for a zero, anywhere in the matrix", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 7 }).chain((n) =>
        fc.array(fc.array(fc.nat(3), { minLength: n, maxLength: n }), {
          minLength: n,
          maxLength: n,
        }),
      ),
      (counts) => {
        const plan = pairwiseAllToAllV(counts);
        const verified = verify(plan);
        if (!verified.ok) throw new Error(verified.reason);
        const sum = counts.map((row, i) => row.reduce((a, b, j) => (i === j ? a : a + b), 0));
        expect(Array.from(verified.sent)).toEqual(sum);
        expect(plan.count.length).toBe(
          counts.flatMap((row, i) => row.filter((c, j) => i !== j && c > 0)).length,
        );
      },
    ),
  );
});

test("switches carry a buffer up and down once", () => {
  const verified = verify(
    createPlan({ operation: "all-reduce", algorithm: "sharp", ranks: 8 }),
    100,
  );
  if (!verified.ok) throw new Error(verified.reason);
  expect(Array.from(verified.sent.subarray(0, 8))).toEqual(Array.from({ length: 8 }, () => 100));
});

test("impossible counts and names are refused with the nearest legal ones", () => {
  const build = (operation: "all-gather" | "all-reduce", algorithm: string, ranks: number) => () =>
    createPlan({ operation, algorithm, ranks });
  expect(build("all-gather", "recursive-doubling", 6)).toThrow("as 4 or 8 are");
  expect(build("all-reduce", "bcube", 12)).toThrow("as 8 or 16 are");
  expect(build("all-reduce", "rng", 4)).toThrow('did you mean "ring"?');
  expect(build("all-reduce", "toString", 4)).toThrow(TriremeError);
  expect(build("all-reduce", "ring", 0)).toThrow("ranks 0 must be an integer of at least 1");
  expect(() =>
    createPlan({ operation: "all-to-all", algorithm: "2d", ranks: 6, perHost: 4 }),
  ).toThrow("1.5 hosts of 4 ranks");
  expect(() =>
    createPlan({ operation: "reduce", algorithm: "binomial", ranks: 4, root: 4 }),
  ).toThrow("root 4 must be an integer in 0..3");
});

test("a ring over 1,024 ranks has 2.1 million sends and verifies", () => {
  const plan = ringAllReduce(1024);
  expect(plan.source.length).toBe(2_095_104);
  const verified = verify(plan, 2 ** 30);
  if (!verified.ok) throw new Error(verified.reason);
  expect(verified.sent[77]).toBe((2 * 1023 * 2 ** 30) / 1024);
  expect(chunkBytes(plan, 2 ** 30)).toBe(2 ** 20);
});

test("a tree pipelines more chunks in as many more steps", () => {
  const [four, eight] = [treeAllReduce(16, 4), treeAllReduce(16, 8)];
  expect(eight.steps - four.steps).toBe(4);
  expect(verify(eight)).toMatchObject({ ok: true });
});

import { readFileSync } from "node:fs";
import {
  doubleBinaryTree,
  ringAllGather,
  ringAllReduce,
  ringReduceScatter,
  treeAllReduce,
  verify,
} from "@trireme/collectives";
import { expect, test } from "vitest";

test("ring and tree plans verify for 1 to 33 ranks", () => {
  for (let n = 1; n <= 33; n++) {
    for (const plan of [ringAllReduce(n), ringReduceScatter(n), ringAllGather(n), treeAllReduce(n)]) {
      expect([n, plan.algorithm, verify(plan)]).toMatchObject([n, plan.algorithm, { ok: true }]);
    }
  }
});
test("double trees equal NCCL's", () => {
  const vectors = JSON.parse(
    readFileSync(new URL("./vectors/nccl-double-tree.json", import.meta.url), "utf8"),
  ) as Record<string, number[][][]>;
  for (const [n, ranks] of Object.entries(vectors)) {
    const trees = doubleBinaryTree(Number(n));
    const ours = trees[0].map((_, r) => trees.map((t) => [t[r]!.parent, ...t[r]!.children]));
    expect(ours, `n = ${n}`).toEqual(ranks);
  }
});
test("1024", () => {
  const t = performance.now();
  const plan = ringAllReduce(1024);
  const t1 = performance.now();
  const v = verify(plan);
  console.log(t1 - t, performance.now() - t1, v.ok, plan.source.length);
});

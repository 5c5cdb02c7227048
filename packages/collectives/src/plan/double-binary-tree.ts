/**
 * NCCL's double binary tree (Sanders, Speck, Träff: Two-tree algorithms for full bandwidth
 * broadcast, reduction and scan, Parallel Computing 2009): two trees over all ranks, each carrying
 * half of the data. A rank's place in the first follows from its lowest set bit; the second is the
 * first mirrored (even rank counts) or turned by one (odd), so that inner ranks of one are leaves
 * of the other, except rank 0 when the count is odd.
 */
import { TriremeError } from "@trireme/core";
import { type CollectivePlan, PlanBuilder, checkRanks } from "./plan.ts";

/** A rank's place in a tree; -1 where there is none. */
export interface TreeNode {
  readonly parent: number;
  readonly children: readonly [number, number];
}

function firstTree(rank: number, ranks: number): TreeNode {
  if (rank === 0) {
    let bit = 1;
    while (bit < ranks) bit *= 2;
    return { parent: -1, children: [-1, ranks > 1 ? bit / 2 : -1] };
  }
  const bit = rank & -rank;
  const above = (rank ^ bit) | (bit << 1);
  const parent = above >= ranks ? rank ^ bit : above;
  let low = bit >> 1;
  const left = low === 0 ? -1 : rank - low;
  let right = low === 0 ? -1 : rank + low;
  while (right >= ranks) {
    low >>= 1;
    right = low === 0 ? -1 : rank + low;
  }
  return { parent, children: [left, right] };
}

/** The places of all ranks in both trees. */
export function doubleBinaryTree(
  ranks: number,
): readonly [readonly TreeNode[], readonly TreeNode[]] {
  checkRanks(ranks);
  const all = Array.from({ length: ranks }, (_, rank) => rank);
  const first = all.map((rank) => firstTree(rank, ranks));
  const [to, from] =
    ranks % 2 === 0
      ? [(r: number): number => ranks - 1 - r, (r: number): number => ranks - 1 - r]
      : [(r: number): number => (r + ranks - 1) % ranks, (r: number): number => (r + 1) % ranks];
  const back = (rank: number): number => (rank < 0 ? -1 : from(rank));
  const second = all.map((rank) => {
    const { parent, children } = first[to(rank)]!;
    return { parent: back(parent), children: [back(children[0]), back(children[1])] } as const;
  });
  return [first, second];
}

/** Distance of each rank from the root. */
function depths(tree: readonly TreeNode[]): Int32Array {
  const depth = new Int32Array(tree.length).fill(-1);
  const queue = [tree.findIndex((node) => node.parent === -1)];
  depth[queue[0]!] = 0;
  for (const rank of queue) {
    for (const child of tree[rank]!.children) {
      if (child < 0) continue;
      depth[child] = depth[rank]! + 1;
      queue.push(child);
    }
  }
  return depth;
}

/**
 * Double binary tree all-reduce, pipelined: each tree sums its half of the chunks towards its root
 * and spreads them back, a chunk per step and edge. `pipeline` chunks per tree, by default 4.
 */
export function treeAllReduce(ranks: number, pipeline = 4): CollectivePlan {
  if (!Number.isInteger(pipeline) || pipeline < 1) {
    throw new TriremeError("TREE", `pipeline ${pipeline} must be an integer of at least 1`);
  }
  const trees = doubleBinaryTree(ranks);
  const levels = trees.map(depths);
  const height = Math.max(...levels.map((level) => level.reduce((a, b) => Math.max(a, b), 0)));
  const builder = new PlanBuilder(
    { operation: "all-reduce", algorithm: "tree", ranks, chunks: 2 * pipeline },
    4 * pipeline * (ranks - 1),
  );
  for (let step = 0; ranks > 1 && step < pipeline + 2 * height - 1; step++) {
    for (const [t, tree] of trees.entries()) {
      for (let rank = 0; rank < ranks; rank++) {
        const { parent } = tree[rank]!;
        if (parent < 0) continue;
        const depth = levels[t]![rank]!;
        const up = step - (height - depth);
        if (up >= 0 && up < pipeline) builder.add(rank, parent, t * pipeline + up, 1, true);
        const down = step - height - (depth - 1);
        if (down >= 0 && down < pipeline) builder.add(parent, rank, t * pipeline + down, 1, false);
      }
    }
    builder.step();
  }
  return builder.finish();
}

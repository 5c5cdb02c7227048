/**
 * Binomial trees: ⌈lg n⌉ steps from or to a root. Ranks are numbered from the root on; at distance
 * d the subtree of a rank v (a multiple of 2 d) that hangs from v + d is v + d .. v + 2 d - 1.
 */
import { type CollectivePlan, PlanBuilder, type PlanOperation, checkRoot } from "./plan.ts";

/** The edges of the tree by distance, the largest first: parent, child, size of the child's tree. */
function edges(ranks: number): { parent: number; child: number; size: number }[][] {
  const levels: { parent: number; child: number; size: number }[][] = [];
  for (let distance = 1; distance < ranks; distance *= 2) {
    const level = [];
    for (let parent = 0; parent + distance < ranks; parent += 2 * distance) {
      const child = parent + distance;
      level.push({ parent, child, size: Math.min(distance, ranks - child) });
    }
    levels.unshift(level);
  }
  return levels;
}

/** One of the four rooted operations: whole buffers or parts, down from the root or up to it. */
function binomial(
  operation: PlanOperation,
  ranks: number,
  root: number,
  parts: boolean,
  up: boolean,
): CollectivePlan {
  checkRoot(root, ranks);
  const chunks = parts ? ranks : 1;
  const builder = new PlanBuilder({ operation, algorithm: "binomial", ranks, chunks, root });
  const levels = edges(ranks);
  for (const level of up ? levels.toReversed() : levels) {
    for (const { parent, child, size } of level) {
      const [p, c] = [(parent + root) % ranks, (child + root) % ranks];
      const reduce = operation === "reduce";
      if (parts) builder.addWrapped(up ? c : p, up ? p : c, c, size, reduce);
      else builder.add(up ? c : p, up ? p : c, 0, 1, reduce);
    }
    builder.step();
  }
  return builder.finish();
}

/** Binomial broadcast of the whole buffer from `root`. */
export function binomialBroadcast(ranks: number, root = 0): CollectivePlan {
  return binomial("broadcast", ranks, root, false, false);
}

/** Binomial reduce of the whole buffer to `root`. */
export function binomialReduce(ranks: number, root = 0): CollectivePlan {
  return binomial("reduce", ranks, root, false, true);
}

/** Binomial scatter from `root`: a rank receives the parts of its whole subtree. */
export function binomialScatter(ranks: number, root = 0): CollectivePlan {
  return binomial("scatter", ranks, root, true, false);
}

/** Binomial gather to `root`. */
export function binomialGather(ranks: number, root = 0): CollectivePlan {
  return binomial("gather", ranks, root, true, true);
}

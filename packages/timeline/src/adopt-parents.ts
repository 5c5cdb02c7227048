/** Gives a timeline without parents those of another one of the same work. */
import { TriremeError } from "@trireme/core";
import { dependencyGraph } from "./dependency-graph.ts";
import type { Timeline } from "./timeline.ts";

/**
 * What was measured rarely says what waited for what, but what was predicted does: `second` with the
 * parents of `first`, wherever `match` (of spans of `second` to those of `first`) pairs child and
 * parent one to one. A timeline that has parents of its own keeps them, and so does one whose times
 * would make them go round.
 */
export function adoptParents(first: Timeline, second: Timeline, match: Int32Array): Timeline {
  if (second.parents.length > 0 || first.parents.length === 0) return second;
  const back = new Int32Array(first.length).fill(-1);
  const ambiguous = -2;
  match.forEach((i, j) => {
    if (i >= 0) back[i] = back[i] === -1 ? j : ambiguous;
  });
  const parentsAt = new Uint32Array(second.length + 1);
  const parents: number[] = [];
  for (let j = 0; j < second.length; j++) {
    parentsAt[j] = parents.length;
    const i = match[j]!;
    if (i < 0 || back[i] !== j) continue;
    const own: number[] = [];
    for (let e = first.parentsAt[i]!; e < first.parentsAt[i + 1]!; e++) {
      const parent = back[first.parents[e]!]!;
      if (parent >= 0) own.push(parent);
    }
    // One by one: a barrier has as many as there are ranks.
    for (const parent of own.sort((a, b) => a - b)) parents.push(parent);
  }
  parentsAt[second.length] = parents.length;
  const adopted = { ...second, parentsAt, parents: Uint32Array.from(parents) };
  try {
    dependencyGraph(adopted);
  } catch (error) {
    if (error instanceof TriremeError && error.code === "CYCLE") return second;
    throw error;
  }
  return adopted;
}

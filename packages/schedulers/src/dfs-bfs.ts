/**
 * The family between depth-first and breadth-first interleaving (Grattafiori et al., The Llama 3
 * Herd of Models, 2024, §3.3.2, figure 6): N consecutive microbatches run through one chunk of a
 * rank before the next. N = P is depth-first (interleaved 1F1B's usual order), N = M breadth-first;
 * in between, more microbatches in a row hide more communication and hold more activations. Unlike
 * `interleaved`, any N in 1..M and any M are allowed, also fewer microbatches than ranks and a
 * last group that is not whole.
 */
import { TriremeError } from "@trireme/core";
import { execute, unitCosts } from "./execute.ts";
import { type InterleavedOptions, interleavedRows } from "./interleaved.ts";
import { checkCounts } from "./schedule-builder.ts";
import type { Schedule } from "./schedule.ts";

/**
 * Interleaved 1F1B with any group size. Where a group is too small for Megatron's warm-up (a
 * forward would wait for a backward that waits for it), the warm-up grows by as little as runs.
 * @throws TriremeError `SCHEDULE` when the group size is not in 1..M.
 */
export function dfsBfs(o: InterleavedOptions): Schedule {
  const { ranks, chunks, microbatches } = o;
  checkCounts("dfs-bfs", { ranks, chunks, microbatches });
  const groupSize = o.groupSize ?? Math.min(ranks, microbatches);
  if (!Number.isInteger(groupSize) || groupSize < 1 || groupSize > microbatches) {
    throw new TriremeError(
      "SCHEDULE",
      `dfs-bfs: group size ${groupSize} is not an integer in 1..${microbatches} (microbatches)`,
    );
  }
  // Runs with every forward first; so a bisection over the additional warm-up ends.
  const most = microbatches * chunks;
  let [low, high] = [0, 0];
  let schedule = interleavedRows("dfs-bfs", o, groupSize, 0);
  if (runs(schedule)) return schedule;
  for (high = 1; !runs((schedule = interleavedRows("dfs-bfs", o, groupSize, high)));) {
    low = high;
    high = Math.min(most, 2 * high);
  }
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    const candidate = interleavedRows("dfs-bfs", o, groupSize, middle);
    if (runs(candidate)) [high, schedule] = [middle, candidate];
    else low = middle;
  }
  return schedule;
}

function runs(s: Schedule): boolean {
  return execute(s, unitCosts(s)).complete;
}

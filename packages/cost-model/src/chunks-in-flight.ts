/**
 * How many chunks' activations a rank holds at its peak, by schedule: of one microbatch through one of the stages
 * that it holds. Each count is that of the schedule as its paper gives it, for as many microbatches as it needs.
 */
import { type Plan, microbatches, vocabularyBarriers } from "@trireme/workload";

/** Chunks that pipeline rank `rank` holds at its peak. */
export function chunksInFlight(p: Plan, rank: number): number {
  const m = microbatches(p);
  const all = m * p.vpp;
  return Math.min(all, counted(p, rank, m));
}

function counted(p: Plan, rank: number, m: number): number {
  const behind = p.pp - rank - 1;
  switch (p.schedule) {
    case "gpipe":
    case "looped-bfs":
      return m * p.vpp;
    case "1f1b":
      // An interlaced pipeline starts half as many microbatches again (arXiv 2411.05288 §6.4); barriers delay each
      // backward.
      if (p.vocabulary === "interlaced") return Math.floor(p.pp / 2) + behind + 1;
      return behind + 1 + vocabularyBarriers(p);
    // Weight gradients wait up to what 1F1B's first rank holds, on every rank; or twice that (arXiv 2401.10241 §2.2).
    case "zb-h1":
      return p.pp;
    case "zb-h2":
      return 2 * p.pp - 1;
    case "interleaved-zero-bubble":
      return p.pp + (p.vpp - 1) * groupOf(m, p.pp);
    case "interleaved":
      if (p.vpp === 1) return behind + 1;
      // Megatron-LM's interleaved warm-up, 2(p − r − 1) + (v − 1)n in groups of n, and the one at work.
      return 2 * behind + (p.vpp - 1) * groupOf(m, p.pp) + 1;
    case "dfs-bfs":
      return p.vpp === 1 ? behind + 1 : 2 * behind + (p.vpp - 1) * p.pp + 1;
    // Controllable memory (arXiv 2405.15362, Table 2), in halves of a rank's layers: all, half and a third of 1F1B's,
    // and what rounding adds.
    case "zb-v":
      return 2 * p.pp;
    case "v-half":
      return p.pp + 2 + 2 * vocabularyBarriers(p);
    case "v-min":
      return Math.ceil((2 * p.pp) / 3) + 2;
    // One more microbatch than stages (DeepSeek-V3, Table 2), through both halves or both copies.
    case "dualpipe-v":
      return 2 * p.pp + 1;
    case "dualpipe":
      return p.pp + 1;
    // From half of the stages at the ends to all of them in the middle (arXiv 2107.06925, Table 2).
    case "chimera":
      return p.pp / 2 + 1 + Math.min(rank, behind);
  }
}

/**
 * Microbatches that go through a chunk together: the fewest that leave no group with fewer of them than ranks, as
 * schedules are built.
 */
function groupOf(m: number, ranks: number): number {
  let size = Math.min(ranks, m);
  while (m % size !== 0 && m % size < ranks) size++;
  return size;
}

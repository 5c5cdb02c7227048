import { type SharedMemory, communicatorArena } from "@trireme/collectives";
import type { ResolvedRun } from "@trireme/run";
import { boundaryBytes } from "@trireme/workload";
import { pieceGroupCount } from "./staged/piece-sums.ts";

/**
 * The shared memory through which `count` ranks of a run talk. Packets of 64 KiB that a sender may be
 * ahead: two whole activations, so that it does not wait.
 */
export function arenaFor({ model, plan }: ResolvedRun, count: number): SharedMemory {
  const packets = Math.ceil((2 * boundaryBytes(model, plan)) / 65_536);
  const affordable = 2 ** 30 / 65_536 / (count * count);
  const slots = 2 ** Math.floor(Math.log2(Math.max(8, Math.min(2 * packets, affordable))));
  // A rank is in a few groups, and in an emulation each is two; pipelines that differ sum in more.
  const sums = plan.pipelines === undefined ? 0 : pieceGroupCount(model, plan);
  return communicatorArena(count, { slots, groups: Math.max(127, 16 * count + 2 * sums) });
}

import { type SharedMemory, communicatorArena } from "@trireme/collectives";
import type { ResolvedRun } from "@trireme/run";
import { boundaryBytes } from "@trireme/workload";

/**
 * The shared memory through which `count` ranks of a run talk. Packets of 64 KiB that a sender may be
 * ahead: two whole activations, so that it does not wait.
 */
export function arenaFor({ model, plan }: ResolvedRun, count: number): SharedMemory {
  const packets = Math.ceil((2 * boundaryBytes(model, plan)) / 65_536);
  const affordable = 2 ** 30 / 65_536 / (count * count);
  const slots = 2 ** Math.floor(Math.log2(Math.max(8, Math.min(2 * packets, affordable))));
  // In an emulation each group is two.
  return communicatorArena(count, { slots, groups: 127 });
}

import { type SharedMemory, communicatorArena } from "@trireme/collectives";
import type { ResolvedRun } from "@trireme/run";
import { boundaryBytes } from "@trireme/workload";
import { pieceGroupCount } from "../staged/piece-sums.ts";

/** A channel of large messages is fastest in slots of 128 KiB, and with at least 8 of them. */
const slotBytes = 2 ** 17;
const slots = 8;

/**
 * The shared memory through which `count` ranks of a run talk. A sender may be two whole activations
 * ahead, so that it does not wait: each channel, one for each ordered pair of ranks, has room for them
 * while all channels fit 1 GiB. Where activations are small it has 1 MiB, while all fit 256 MiB.
 */
export function arenaFor({ model, plan }: ResolvedRun, count: number): SharedMemory {
  const whole = 2 ** Math.ceil(Math.log2(2 * boundaryBytes(model, plan)));
  const channel = Math.max(
    Math.min(slots * slotBytes, share(2 ** 28, count)),
    Math.min(whole, share(2 ** 30, count)),
  );
  const slot = Math.max(64, Math.min(slotBytes, channel / slots));
  // A rank is in a few groups, and in an emulation each is two; pipelines that differ sum in more.
  const sums = plan.pipelines === undefined ? 0 : pieceGroupCount(model, plan);
  return communicatorArena(count, {
    slotBytes: slot,
    slots: Math.max(1, channel / slot),
    groups: Math.max(127, 16 * count + 2 * sums),
  });
}

/** The greatest power of two that every channel among `count` ranks can have. */
function share(bytes: number, count: number): number {
  return 2 ** Math.floor(Math.log2(bytes / (count * count)));
}

/** The newest state that is whole in the memories that are left when ranks have died. */
import { type MemoryCopy, recoverFromMemory } from "@trireme/checkpoint";
import type { Snapshot } from "@trireme/runtime";
import type { HeldCopies, RankCopies } from "./memory-copies.ts";
import type { RankFileMemory, SnapshotFiles } from "./snapshot-files.ts";

/** A state that came back from memory, or why it must come from storage. */
export type Recovery =
  | { readonly ok: true; readonly snapshot: Snapshot }
  | { readonly ok: false; readonly reason: string };

/** Puts the state together; the memory of the ranks in `lost` is gone with them. */
export function recover(
  copies: readonly RankCopies[],
  lost: ReadonlySet<number>,
  files: SnapshotFiles,
): Recovery {
  const found: MemoryCopy[] = [];
  const places = new Map<string, SharedArrayBuffer>();
  copies.forEach(({ own, held }, host) => {
    for (const { rank, buffers, steps } of [own, held] satisfies HeldCopies[]) {
      buffers.forEach((buffer, i) => {
        const step = Atomics.load(steps, i);
        if (step < 0) return;
        found.push({ rank, step, host });
        places.set([rank, step, host].join(), buffer);
      });
    }
  });
  const homes = copies.map((_, rank) => rank);
  const recovery = recoverFromMemory(found, homes, lost);
  if (!recovery.ok) return recovery;
  const { step, hosts } = recovery;
  const ranks = copies.map((_, rank): RankFileMemory => {
    const size = files.rankSize(rank);
    const buffer = places.get([rank, step, hosts[rank]!].join())!;
    return size === 0 ? undefined : new Uint8Array(buffer, 0, size);
  });
  return { ok: true, snapshot: { step, files: files.withIndex(ranks) } };
}

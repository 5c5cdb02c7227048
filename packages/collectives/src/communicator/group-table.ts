/**
 * Groups of an arena, and who has called what in each. A group is found by a hash of its parent,
 * its members and how often that pair was made before, so that members agree on a slot without
 * talking. In its slot each rank announces its latest calls; ranks compare them, which finds
 * mismatches also between ranks that exchange no bytes in the operation.
 */
import { TriremeError, hash32 } from "@trireme/core";
import { type ArenaLayout, announcementBytes, groupEntryBytes } from "./arena.ts";
import { type Call, loadCall, storeCall } from "./operation.ts";

/** Latest calls kept per rank and group; a power of two. */
const kept = 4;
const entryWords = 8;
const firstEntry = 16;

/**
 * Takes, or finds, the slot of a group; slot 0 is the whole. Both halves of its name are stored at
 * once, so that no rank has to wait for another that has stored one.
 */
export function groupSlot(
  words: Int32Array,
  layout: ArenaLayout,
  parent: number,
  members: readonly number[],
  ordinal: number,
): number {
  const key = hash32(parent, ordinal, ...members) | 1;
  const check = hash32(key, members.length, ...members, ordinal, parent);
  const name = BigInt.asIntN(64, (BigInt(check >>> 0) << 32n) | BigInt(key >>> 0));
  const names = new BigInt64Array(words.buffer);
  for (let probe = 0; probe < layout.groups - 1; probe++) {
    const slot = 1 + (((key >>> 1) + probe) % (layout.groups - 1));
    const at = (layout.groupTable + slot * groupEntryBytes) / 8;
    const found = Atomics.compareExchange(names, at, 0n, name);
    if (found === 0n || found === name) return slot;
  }
  throw new TriremeError(
    "GROUPS",
    `group of ranks ${members.join(", ")} is one more than the ${layout.groups - 1} this arena holds; pass groups to communicatorArena()`,
  );
}

function announcementWord(layout: ArenaLayout, group: number, rank: number): number {
  return (layout.announcements + (group * layout.ranks + rank) * announcementBytes) / 4;
}

/** Tells the other members that `rank` has made call `sequence` (from 1) of the group. */
export function announce(
  words: Int32Array,
  layout: ArenaLayout,
  group: number,
  rank: number,
  sequence: number,
  call: Call,
): void {
  const at = announcementWord(layout, group, rank);
  const entry = at + firstEntry + (sequence & (kept - 1)) * entryWords;
  Atomics.store(words, entry, 0);
  storeCall(words, entry + 1, call);
  Atomics.store(words, entry, sequence);
  Atomics.store(words, at, sequence);
}

/** Calls that `rank` has made in the group. */
export function announced(
  words: Int32Array,
  layout: ArenaLayout,
  group: number,
  rank: number,
): number {
  return Atomics.load(words, announcementWord(layout, group, rank));
}

/** The call `sequence` of `rank` in the group, unless it has not made it or it is no longer kept. */
export function announcedCall(
  words: Int32Array,
  layout: ArenaLayout,
  group: number,
  rank: number,
  sequence: number,
): Call | undefined {
  const entry =
    announcementWord(layout, group, rank) + firstEntry + (sequence & (kept - 1)) * entryWords;
  if (Atomics.load(words, entry) !== sequence) return undefined;
  const call = loadCall(words, entry + 1);
  return Atomics.load(words, entry) === sequence ? call : undefined;
}

/**
 * The shared memory through which ranks on threads of one process talk. In order: a header, the
 * record of an abort, one block per rank (doorbell and state), the table of groups, announcements
 * (who has called what, per group and rank), flight records, scratch of each rank, and one bounded
 * channel per ordered pair of ranks. Everything is found by arithmetic from four numbers in the
 * header, so that a rank needs the memory and nothing else.
 */
import { type Bytes, TriremeError } from "@trireme/core";

/** A shared `WebAssembly.Memory`, as far as this package looks at it. */
export interface SharedMemory {
  readonly buffer: ArrayBuffer | SharedArrayBuffer;
}

/** Options of `communicatorArena`. */
export interface ArenaOptions {
  /** Payload of one slot of a channel, a multiple of 64; by default 128 KiB, less for many ranks. */
  readonly slotBytes?: Bytes;
  /** Slots of a channel, a power of two: packets a sender may be ahead of its receiver. Default 8. */
  readonly slots?: number;
  /** All-reduces up to this size go whole from each rank to each, larger ones in two halves. Default 4096. */
  readonly oneShotBytes?: Bytes;
  /** Groups that may exist at once besides the whole. Default 63. */
  readonly groups?: number;
}

/** Where things lie in an arena; byte offsets. */
export interface ArenaLayout {
  readonly ranks: number;
  readonly slotBytes: Bytes;
  readonly slots: number;
  readonly groups: number;
  readonly oneShotBytes: Bytes;
  readonly rankBlocks: number;
  readonly groupTable: number;
  readonly announcements: number;
  readonly flights: number;
  readonly scratch: number;
  readonly channels: number;
  readonly bytes: Bytes;
}

/** Strides and fixed sizes in bytes. A line is kept for each word that two ranks write. */
export const line: number = 64;
const rankBlockBytes: number = 4 * line;
export const groupEntryBytes = 64;
export const announcementBytes: number = 4 * line;
export const flightEntries: number = 64;
export const flightEntryBytes = 64;
export const flightBytes: number = line + flightEntries * flightEntryBytes;
export const scratchBuffers: number = 5;
export const channelControlBytes: number = 2 * line;
export const slotHeaderBytes = 64;

/** Words of the header. */
const magic = 0x54524941;
const version = 1;
const headerBytes = 4 * line + 2 * 1024;
const page = 65_536;
const largest = 65_536 * page;

function layoutOf(
  ranks: number,
  slotBytes: Bytes,
  slots: number,
  groups: number,
  oneShotBytes: Bytes,
): ArenaLayout {
  const rankBlocks = headerBytes;
  const groupTable = rankBlocks + ranks * rankBlockBytes;
  const announcements = groupTable + groups * groupEntryBytes;
  const flights = announcements + ranks * groups * announcementBytes;
  const scratch = flights + ranks * flightBytes;
  const channels = scratch + ranks * scratchBuffers * (slotHeaderBytes + slotBytes);
  const channel = channelControlBytes + slots * (slotHeaderBytes + slotBytes);
  const bytes = channels + ranks * ranks * channel;
  return {
    ranks,
    slotBytes,
    slots,
    groups,
    oneShotBytes,
    rankBlocks,
    groupTable,
    announcements,
    flights,
    scratch,
    channels,
    bytes,
  };
}

/** The largest slot, a power of two up to 128 KiB, that keeps all channels within 256 MiB. */
function fittingSlot(ranks: number, slots: number): Bytes {
  let slotBytes = 131_072;
  while (slotBytes > 256 && ranks * ranks * slots * slotBytes > 2 ** 28) slotBytes /= 2;
  return slotBytes;
}

interface MemoryConstructor {
  new (descriptor: { initial: number; maximum: number; shared: true }): SharedMemory;
}

/**
 * A new arena for `ranks` ranks: a shared `WebAssembly.Memory`, zeroed except for its header.
 * Hand it to every rank's thread. Throws `ARENA` when it would pass the 4 GiB of such a memory.
 */
export function communicatorArena(ranks: number, options: ArenaOptions = {}): SharedMemory {
  if (!Number.isInteger(ranks) || ranks < 1) {
    throw new TriremeError("ARENA", `ranks ${ranks} must be an integer of at least 1`);
  }
  const slots = options.slots ?? 8;
  const slotBytes = options.slotBytes ?? fittingSlot(ranks, slots);
  const groups = (options.groups ?? 63) + 1;
  // Counters of slots wrap at 2³², so their number has to divide that.
  if (!Number.isInteger(Math.log2(slots)) || slots < 1 || slots > 65_536) {
    throw new TriremeError("ARENA", `slots ${slots} must be a power of two in 1..65536`);
  }
  if (!Number.isInteger(slotBytes / 64) || slotBytes < 64) {
    throw new TriremeError("ARENA", `slotBytes ${slotBytes} must be a positive multiple of 64`);
  }
  if (!Number.isInteger(groups) || groups < 1) {
    throw new TriremeError("ARENA", `groups ${groups - 1} must be an integer of at least 0`);
  }
  const oneShotBytes = options.oneShotBytes ?? 4096;
  if (!Number.isInteger(oneShotBytes) || oneShotBytes < 0 || oneShotBytes >= 2 ** 31) {
    throw new TriremeError("ARENA", `oneShotBytes ${oneShotBytes} must be an integer in 0..2^31-1`);
  }
  const layout = layoutOf(ranks, slotBytes, slots, groups, oneShotBytes);
  if (layout.bytes > largest) {
    throw new TriremeError(
      "ARENA",
      `${ranks} ranks with ${slots} slots of ${slotBytes} B need an arena of ${layout.bytes} B, more than 4 GiB; use fewer slots or smaller ones`,
    );
  }
  const pages = Math.ceil(layout.bytes / page);
  const host: { readonly Memory: MemoryConstructor } = Reflect.get(globalThis, "WebAssembly");
  const { Memory } = host;
  const memory = new Memory({ initial: pages, maximum: pages, shared: true });
  const header = [magic, version, ranks, slotBytes, slots, groups, oneShotBytes];
  new Int32Array(memory.buffer, 0, 7).set(header);
  return memory;
}

/** Reads the layout back from the header of an arena. Throws `ARENA` when it is none. */
export function arenaLayout(memory: SharedMemory): ArenaLayout {
  if (!(memory.buffer instanceof SharedArrayBuffer) || memory.buffer.byteLength < headerBytes) {
    throw new TriremeError("ARENA", "the memory is not shared; make it with communicatorArena()");
  }
  const header = new Int32Array(memory.buffer, 0, 7);
  if (header[0] !== magic || header[1] !== version) {
    throw new TriremeError(
      "ARENA",
      `the memory starts with ${header[0]} ${header[1]}, not with the header of an arena (${magic} ${version}); make it with communicatorArena()`,
    );
  }
  return layoutOf(header[2]!, header[3]!, header[4]!, header[5]!, header[6]!);
}

/** Index, in 32-bit words, of a rank's block: word 0 bell, +16 sleeping, +32 closed. */
export function rankWord(layout: ArenaLayout, rank: number): number {
  return (layout.rankBlocks + rank * rankBlockBytes) / 4;
}

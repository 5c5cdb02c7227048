/** The rings of a host: one for each slice of a share that its ranks read, whatever their number. */
import { join } from "node:path";
import { TriremeError } from "@trireme/core";
import { createFileRing } from "./file-ring.ts";
import type { CheckedHostOptions } from "./host-loader-options.ts";
import type { RankFeed } from "./rank-batches.ts";
import type { RingRef, RingShape } from "./ring.ts";
import { createSharedRing } from "./shared-ring.ts";

/** Rings, and who reads them. */
export interface RankRings {
  /** For each share that is needed here, a ring for each slice that is. */
  readonly rings: ReadonlyMap<number, readonly (RingRef | undefined)[]>;
  /** What a rank reads from. @throws TriremeError where it is not here or reads nothing. */
  feed(rank: number): RankFeed;
}

/** Makes the rings, in files of `directory` named after `generation`, or in shared memory. */
export function createRankRings(
  { planner, ranks, prefetch: slots, slotWords }: CheckedHostOptions,
  firstStep: number,
  directory: string | undefined,
  generation: number,
): RankRings {
  const { tree, broadcast } = planner.spec;
  const local = new Set(ranks);
  const rings = new Map<number, (RingRef | undefined)[]>();
  const feeds = new Map<number, RankFeed>();
  const relayedFrom = new Map<number, number>();
  for (const { share, slice, readers, relays } of planner.deliveries) {
    for (const [from, to] of relays) if (local.has(to)) relayedFrom.set(to, from);
    const here = readers.filter((rank) => local.has(rank));
    if (here.length === 0) continue;
    const name = `share ${share}, slice ${slice}`;
    const shape: RingShape = { name, firstStep, slots, slotWords, readers: here };
    const ring =
      directory === undefined
        ? createSharedRing(shape)
        : createFileRing(shape, join(directory, `${generation}-${share}-${slice}.ring`));
    const slices = rings.get(share) ?? new Array<RingRef | undefined>(tree.slices).fill(undefined);
    slices[slice] = ring;
    rings.set(share, slices);
    here.forEach((rank, reader) => feeds.set(rank, { rank, ring, reader }));
  }
  return {
    rings,
    feed(rank) {
      const feed = feeds.get(rank);
      if (feed !== undefined) return feed;
      const from = relayedFrom.get(rank);
      throw new TriremeError(
        "HOST_LOADER",
        from === undefined
          ? `rank ${rank} is not on this host, which has ${[...feeds.keys()].join(", ")}`
          : `rank ${rank} gets its data from rank ${from}, as the program broadcasts along ${broadcast.join(", ")}`,
      );
    },
  };
}

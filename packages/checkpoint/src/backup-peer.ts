/**
 * Whose memory keeps a rank's state of the last step (ByteRobust, SOSP 2025): a peer that shares none
 * of the rank's parallel groups, since a whole group may be evicted on suspicion, and better, one on a
 * host that no rank of those groups is on, since it is hosts that are evicted. Peers are found by moving
 * every rank by the same distance in the layout's axes, so each rank keeps exactly one copy.
 */
import { TriremeError } from "@trireme/core";
import { type ParallelLayout, layoutRanks } from "./parallel-layout.ts";

/**
 * How far apart rank and peer are. "host": on different hosts; "group": also without a parallel group in
 * common; "group-host": also without a host in common with any rank of those groups.
 */
export type PeerSeparation = "host" | "group" | "group-host";

/** The peers, as far apart as the layout allows; or why there are none. */
export type BackupPeers =
  | {
      readonly ok: true;
      /** By rank; a permutation. */
      readonly peers: Int32Array;
      readonly separation: PeerSeparation;
    }
  | { readonly ok: false; readonly reason: string };

/** The peers of a layout whose ranks fill hosts in order, `ranksPerHost` on each. */
export function backupPeers(layout: ParallelLayout, ranksPerHost: number): BackupPeers {
  if (!Number.isSafeInteger(ranksPerHost) || ranksPerHost < 1) {
    throw new TriremeError(
      "CHECKPOINT",
      `ranksPerHost ${ranksPerHost}: it is an integer of at least 1`,
    );
  }
  const ranks = layoutRanks(layout);
  if (ranks <= ranksPerHost) {
    return { ok: false, reason: `all ${ranks} ranks are on one host; a copy needs a second` };
  }
  const groups = parallelGroups(layout);
  let best: { peers: Int32Array; level: number } | undefined;
  for (const peers of translations(layout, ranksPerHost)) {
    const level = separationOf(peers, groups, ranksPerHost, best?.level ?? 0);
    if (level > (best?.level ?? 0)) best = { peers, level };
    if (level === levels.length) break;
  }
  if (best === undefined) {
    return {
      ok: false,
      reason: `no shift of the ${ranks} ranks takes each to another host of ${ranksPerHost}; fill every host`,
    };
  }
  return { ok: true, peers: best.peers, separation: levels[best.level - 1]! };
}

const levels: readonly PeerSeparation[] = ["host", "group", "group-host"];

/** For each kind of parallel group with more than one member: the number of each rank's group. */
function parallelGroups(layout: ParallelLayout): readonly Int32Array[] {
  const { tp, cp, dp, ep, expertTp } = layout;
  const ranks = layoutRanks(layout);
  const perStage = tp * cp * dp;
  /** The group of ranks that differ only in the axis of that size and stride. */
  const along = (size: number, stride: number): Int32Array =>
    Int32Array.from({ length: ranks }, (_, rank) => {
      return rank - (Math.floor(rank / stride) % size) * stride;
    });
  const axes: readonly (readonly [size: number, stride: number])[] = [
    [tp, 1],
    // Context and data parallelism share weights: one group.
    [cp * dp, tp],
    [layout.pp, perStage],
    [expertTp, 1],
    [ep, expertTp],
    [perStage / (expertTp * ep), expertTp * ep],
  ];
  return axes.flatMap(([size, stride]) => (size > 1 ? [along(size, stride)] : []));
}

/** Shifts by nothing, a neighbour or half an axis, in every combination; then by a whole host. */
function* translations(layout: ParallelLayout, ranksPerHost: number): Generator<Int32Array> {
  const ranks = layoutRanks(layout);
  const sizes = [layout.tp, layout.cp, layout.dp, layout.pp];
  const shifts = sizes.map((size) => [...new Set([0, 1 % size, Math.floor(size / 2)])]);
  for (const pp of shifts[3]!) {
    for (const dp of shifts[2]!) {
      for (const cp of shifts[1]!) {
        for (const tp of shifts[0]!) {
          const by = [tp, cp, dp, pp];
          yield Int32Array.from({ length: ranks }, (_, rank) => {
            let peer = 0;
            let stride = 1;
            for (const [axis, size] of sizes.entries()) {
              const at = Math.floor(rank / stride) % size;
              peer += ((at + by[axis]!) % size) * stride;
              stride *= size;
            }
            return peer;
          });
        }
      }
    }
  }
  yield Int32Array.from({ length: ranks }, (_, rank) => (rank + ranksPerHost) % ranks);
}

/** The least separation over all ranks, as a count of `levels`; stops once it is no more than `beat`. */
function separationOf(
  peers: Int32Array,
  groups: readonly Int32Array[],
  ranksPerHost: number,
  beat: number,
): number {
  let level = levels.length;
  for (let rank = 0; rank < peers.length; rank++) {
    const peer = peers[rank]!;
    const host = Math.floor(peer / ranksPerHost);
    if (host === Math.floor(rank / ranksPerHost)) return 0;
    const first = host * ranksPerHost;
    const end = Math.min(first + ranksPerHost, peers.length);
    for (const group of groups) {
      const own = group[rank]!;
      if (group[peer] === own) level = Math.min(level, 1);
      if (level < levels.length) continue;
      for (let other = first; other < end; other++) {
        if (group[other] === own) {
          level = 2;
          break;
        }
      }
    }
    if (level <= beat) return level;
  }
  return level;
}

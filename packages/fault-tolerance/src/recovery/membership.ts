/** Who trains next: survivors keep their ranks, standbys take the places of the evicted. */
export interface MembershipInput {
  /** Members of the last generation by rank, evicted ones included. */
  readonly layout: readonly number[];
  /** Those of them that are left, in the same order. */
  readonly kept: readonly number[];
  /** Standbys that could be hired, in order of preference. */
  readonly ready: readonly number[];
  /** Hosts wanted. */
  readonly target: number;
  /** Hosts of a data-parallel replica: the result is a multiple of it. */
  readonly unit: number;
}

export interface Membership {
  /** Hosts by rank. */
  readonly members: readonly number[];
  readonly hired: readonly number[];
  /** Survivors for which no whole replica is left: they wait as standbys. */
  readonly spared: readonly number[];
}

/**
 * As many whole replicas as there are hosts for. Of the first ranks each survivor keeps its own, so
 * that what it holds in memory stays of use; holes are filled with survivors of later ranks, then
 * with standbys.
 */
export function nextMembership(input: MembershipInput): Membership {
  const { layout, kept, ready, target, unit } = input;
  const size = Math.min(target, Math.floor((kept.length + ready.length) / unit) * unit);
  const members: number[] = [];
  const holes: number[] = [];
  let survivors = 0;
  for (let rank = 0; rank < size; rank++) {
    const host = layout[rank];
    if (host !== undefined && kept[survivors] === host) {
      survivors++;
      members.push(host);
    } else holes.push(members.push(-1) - 1);
  }
  const later = kept.slice(survivors);
  const hired: number[] = [];
  for (const rank of holes) {
    let host = later.shift();
    if (host === undefined) {
      host = ready[hired.length]!;
      hired.push(host);
    }
    members[rank] = host;
  }
  return { members, hired, spared: later };
}

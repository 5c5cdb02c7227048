/**
 * Who hangs, from flight records: on a timeout every rank logs the collective it is in (MegaScale,
 * section 5). A rank that logs nothing is the culprit; where all log, it is one that is behind its
 * group, or one that entered another operation than the rest.
 */
import { TriremeError } from "@trireme/core";

/** The collective a rank was in when it timed out. */
export interface FlightRecord {
  readonly rank: number;
  /** Name of the process group. */
  readonly group: string;
  /** Number of the collective within the group, counted by the rank. */
  readonly sequence: number;
  readonly operation: string;
}

export interface HangReport {
  /** Ranks that logged nothing: the culprits, where there is one. */
  readonly silent: readonly number[];
  /** Ranks at a smaller sequence number than the furthest of their group: they never arrived. */
  readonly behind: readonly number[];
  /** Ranks whose operation differs from what most of their group entered at that number. */
  readonly mismatched: readonly number[];
  /** The ranks to act on: the silent, or else the mismatched, or else those behind. */
  readonly culprits: readonly number[];
}

/**
 * Reads the records of a hang of ranks 0 … ranks−1. A rank logs one record for each group it waits in.
 * @throws TriremeError "HANG" on a rank out of range or a number that is not whole.
 */
export function analyseHang(ranks: number, records: Iterable<FlightRecord>): HangReport {
  const groups = new Map<string, FlightRecord[]>();
  const logged = new Set<number>();
  for (const record of records) {
    const { rank, group, sequence } = record;
    if (!Number.isInteger(rank) || rank < 0 || rank >= ranks || !Number.isSafeInteger(sequence)) {
      throw new TriremeError(
        "HANG",
        `rank ${rank} of ${ranks} logged operation ${sequence} of ${group}: use whole numbers in range`,
      );
    }
    logged.add(rank);
    const known = groups.get(group);
    if (known) known.push(record);
    else groups.set(group, [record]);
  }
  const behind = new Set<number>();
  const mismatched = new Set<number>();
  for (const members of groups.values()) {
    const furthest = members.reduce((most, each) => Math.max(most, each.sequence), -Infinity);
    const here = members.filter((each) => each.sequence === furthest);
    const usual = mostCommon(here.map((each) => each.operation));
    for (const each of members) {
      if (each.sequence < furthest) behind.add(each.rank);
      else if (usual !== undefined && each.operation !== usual) mismatched.add(each.rank);
    }
  }
  const silent = Array.from({ length: ranks }, (_, rank) => rank).filter((r) => !logged.has(r));
  const found = { silent, behind: ascending(behind), mismatched: ascending(mismatched) };
  const first = [found.silent, found.mismatched, found.behind].find((each) => each.length > 0);
  return { ...found, culprits: first ?? [] };
}

/** The operation of more than half, so that in a tie nobody is accused. */
function mostCommon(operations: readonly string[]): string | undefined {
  const counts = new Map<string, number>();
  for (const each of operations) counts.set(each, (counts.get(each) ?? 0) + 1);
  return [...counts].find(([, count]) => 2 * count > operations.length)?.[0];
}

function ascending(ranks: Iterable<number>): number[] {
  return [...ranks].toSorted((a, b) => a - b);
}

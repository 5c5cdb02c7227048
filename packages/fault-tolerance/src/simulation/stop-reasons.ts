/** Whether a run had reason to stop: by what its controller had truly been told. */
import type { Seconds } from "@trireme/core";

import type { ControllerOptions } from "../recovery/options.ts";
import type { ControllerRecord, StopKind } from "../recovery/record.ts";

/** What one controller process has truly been told. */
export interface Told {
  readonly since: Seconds;
  /** When a report of each host last reached it. */
  readonly heard: Map<number, Seconds>;
  /** Greatest generation that each host has reported to it. */
  readonly entered: Map<number, number>;
  /** Hosts whose evidence against themselves has reached it, and that are not repaired since. */
  readonly faulty: Set<number>;
  last: Seconds;
}

/** What a stop is judged by. */
export interface StopInput {
  readonly record: ControllerRecord;
  readonly now: Seconds;
  readonly told: Told;
  readonly options: ControllerOptions;
  /** Generations begun since a step was committed, and those in which a loss spike was reported. */
  readonly generations: number;
  readonly losses: number;
}

/** Whether the reason for which the run stopped holds. */
export function mayStop(kind: StopKind, input: StopInput): boolean {
  const { record, now, told, generations, losses } = input;
  const { deadline, minimum = 1, unit = 1, restarts = 3, blackout = 0, lease } = input.options;
  // A host that is known to be broken could have been evicted first.
  if (record.members.some((host) => told.faulty.has(host))) return false;
  switch (kind) {
    case "crash-loop":
      return generations > restarts;
    case "diverged":
    case "no-checkpoint":
      return losses > 0;
    case "unfenced":
      return lease === undefined && record.members.length === 0;
    case "deaf":
      return now - Math.max(told.last, told.since) >= blackout - 1e-6;
    case "too-few-hosts": {
      const known = [...record.members, ...record.standbys];
      const here = known.filter(
        (host) => now - (told.heard.get(host) ?? told.since) < deadline - 1e-6,
      );
      return Math.floor(here.length / unit) * unit < minimum;
    }
  }
}

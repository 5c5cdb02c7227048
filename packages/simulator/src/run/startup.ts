/**
 * What a restart takes once its hosts are decided: processes, process groups, state, and the steps since
 * the state that could be loaded. ByteRobust (SOSP 2025, table 7) measures the first by how hosts come:
 * in place 46 to 65 s on 128 to 1,024 hosts, woken standbys about a tenth of a requeue (454 to 768 s).
 */
import type { Seconds } from "@trireme/core";
import { type Store, groupCreation, stores } from "@trireme/collectives";
import type { Restart } from "@trireme/fault-tolerance/simulation";
import type { Plan } from "@trireme/workload";
import type { LoadedFrom, StorageTimes } from "./checkpoint-storage.ts";

export interface Startup {
  /** Of processes where no host is new; 46 s by default. */
  readonly inPlace?: Seconds;
  /** Of processes where standbys are woken, which were self-checked before; 50 s by default. */
  readonly standby?: Seconds;
  /** What answers barriers of group creation; Redis by default. */
  readonly store?: Store;
  /** A barrier after each kind of group (MegaScale, the default) or after each group. */
  readonly barriers?: "per-group" | "per-kind";
}

/** Parts of a restart, in order. */
export interface RestartTimes {
  readonly launch: Seconds;
  readonly groups: Seconds;
  readonly load: Seconds;
  /** Training again from storage what was committed in memories that are lost. */
  readonly recompute: Seconds;
  readonly from: LoadedFrom;
}

export const restartParts = ["launch", "groups", "load", "recompute"] as const;

export interface RestartInput {
  readonly startup: Startup;
  readonly storage: StorageTimes;
  /** Of the generation that starts. */
  readonly plan: Plan;
  readonly step: Seconds;
  /** Whether the run has gone back below what was committed. */
  readonly stale: boolean;
}

export function restartTimes(o: RestartInput, { record, before }: Restart): RestartTimes {
  const { inPlace = 46, standby = 50, store = stores.redis, barriers = "per-kind" } = o.startup;
  const { tp, cp, dp, pp } = o.plan;
  const { members, committed } = record;
  const trained = before.length > 0;
  const lost = lostPlaces(before, members);
  // Whoever keeps their place needs no more than a new process; whoever moves loads another's state.
  const hired = !trained || members.some((host, place) => before[place] !== host);
  const loading = o.storage.load(before.length, lost, o.stale);
  const behind = o.storage.inMemory && loading.from === "storage" && !o.stale;
  return {
    launch: hired ? standby : inPlace,
    groups: groupCreation({ axes: [tp, cp, dp, pp], store, barriers }).time,
    // Until the first save there is nothing to load: weights are drawn anew.
    load: committed === 0 ? 0 : loading.time,
    recompute: behind
      ? (committed - o.storage.stored(committed, members.length, o.step)) * o.step
      : 0,
    from: loading.from,
  };
}

/** Places of the last generation whose hosts are members no more. */
function lostPlaces(before: readonly number[], members: readonly number[]): readonly number[] {
  // Most hosts keep their place: only the others are looked for.
  const moved: number[] = [];
  const arrived = new Set(members.slice(before.length));
  for (let place = 0; place < before.length; place++) {
    const host = members[place];
    if (host === before[place]) continue;
    moved.push(place);
    if (host !== undefined) arrived.add(host);
  }
  return moved.filter((place) => !arrived.has(before[place]!));
}

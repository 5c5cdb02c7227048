/** How often to save: the checkpoint package's optimum for what a storage makes a save cost. */
import { type Seconds, TriremeError, days } from "@trireme/core";
import { optimalInterval } from "@trireme/checkpoint";
import { type FaultSource, unitsOf } from "@trireme/fault-tolerance";
import { type Cluster, hostOf } from "@trireme/topology";
import { type CheckpointStorage, StorageTimes } from "./checkpoint-storage.ts";

export interface SaveIntervalOptions {
  readonly checkpoint: Omit<CheckpointStorage, "every">;
  readonly cluster: Cluster;
  /** Hosts that train. */
  readonly hosts: number;
  readonly step: Seconds;
  /** Mean time between failures of the run: `meanTimeBetweenStops`. */
  readonly mtbf: Seconds;
  /** From a failure to training again; 0 by default. */
  readonly recovery?: Seconds;
}

/**
 * Steps between two saves to storage that make the most of a run; of "peer-memory", which saves every
 * step, as few as storage can follow.
 */
export function bestSaveEvery(o: SaveIntervalOptions): number {
  const { cluster, hosts, step, mtbf, recovery = 0 } = o;
  const devices = hostOf(cluster, 0).accelerators;
  const storage = new StorageTimes({ ...o.checkpoint, every: 1 }, devices);
  const { write, durable } = storage.save(hosts);
  if (storage.inMemory) return Math.max(1, Math.ceil(storage.toStorage(hosts) / step));
  const interval = optimalInterval({ blocking: write, overlapped: durable, mtbf, recovery });
  const fewest = Math.ceil((storage.toStorage(hosts) - write) / step);
  return Math.max(1, fewest, Math.round(interval / step));
}

/**
 * Mean time between stops of a run by memoryless sources, all of the cluster's units counted.
 * @throws TriremeError "RUN" for a source with memory, whose rate is no one number.
 */
export function meanTimeBetweenStops(cluster: Cluster, sources: readonly FaultSource[]): Seconds {
  let perDay = 0;
  for (const { name, component, law, effect } of sources) {
    if (effect.kind !== "stop") continue;
    if (law.kind !== "exponential") {
      throw new TriremeError("RUN", `source ${name} is ${law.kind}: give the mtbf as a number`);
    }
    perDay += (days(1) * unitsOf(cluster, component).count) / law.mean;
  }
  return days(1) / perDay;
}

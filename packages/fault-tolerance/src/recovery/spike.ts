/**
 * After a loss spike: back to a save from before it and past the batches around it. Of Acme (NSDI'24,
 * section 6.1: an earlier healthy checkpoint, following batches skipped) and PaLM (Chowdhery et al.
 * 2022, section 5.1: some 100 steps back, 200 to 500 batches skipped); ByteRobust (SOSP'25) first
 * reattempts the same batches, which is enough when a host computed wrongly.
 */
export interface SpikePolicy {
  /** Times the same batches are tried again before they are skipped; 0. */
  readonly reattempts: number;
  /** Steps up to the spike that are distrusted; 100. Its own always is, so 0 is as good as 1. */
  readonly back: number;
  /** Batches after the spike that are skipped too; 100. */
  readonly margin: number;
  /** Spikes in a row, none of them passed, before the run is called diverged; 5. */
  readonly limit: number;
}

export const defaultSpikePolicy: SpikePolicy = { reattempts: 0, back: 100, margin: 100, limit: 5 };

/** The spike that was last recovered from. */
export interface Spike {
  /** Batch of the data (step + skip) in which it was seen. */
  readonly batch: number;
  /** Spikes in a row up to it. */
  readonly count: number;
}

export type Rollback =
  | { readonly ok: true; readonly to: number; readonly skip: number; readonly spike: Spike }
  | { readonly ok: false; readonly stop: "diverged" | "no-checkpoint"; readonly reason: string };

/** What a rollback is decided from. */
export interface RollbackInput {
  /** Step at which the spike was seen. */
  readonly step: number;
  /** Batches skipped so far. */
  readonly skip: number;
  /** Steps whose state can be restored, ascending. */
  readonly saves: readonly number[];
  readonly last: Spike | undefined;
  readonly policy: SpikePolicy;
}

/**
 * Which save to go back to (the newest that is `back` steps older than the spike, else the oldest
 * kept), and how many batches are skipped from then on: all up to `margin` past the spike.
 */
export function planRollback(input: RollbackInput): Rollback {
  const { step, skip, saves, last, policy } = input;
  const batch = step + skip;
  // A spike no further than the last one (and what was skipped after it) is the same trouble.
  // With no margin the batch after is the next that can spike.
  const near = Math.max(1, 2 * policy.margin);
  const count = last !== undefined && batch <= last.batch + near ? last.count + 1 : 1;
  if (count > policy.limit) {
    const reason = `diverged: ${count} loss spikes in a row up to step ${step}, batch ${batch}`;
    return { ok: false, stop: "diverged", reason };
  }
  // A save of the spike's own step has the spike in it.
  const newest = step - Math.max(1, policy.back);
  const to = saves.findLast((save) => save <= newest) ?? saves[0];
  if (to === undefined || to >= step) {
    const oldest = to === undefined ? "no save is kept" : `the oldest save kept is of step ${to}`;
    const reason = `the loss spiked at step ${step}, but ${oldest}`;
    return { ok: false, stop: "no-checkpoint", reason };
  }
  const skipped = count <= policy.reattempts ? skip : batch + policy.margin - to;
  return { ok: true, to, skip: skipped, spike: { batch, count } };
}

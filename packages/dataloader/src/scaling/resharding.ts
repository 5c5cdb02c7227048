/**
 * Data that is already loaded when the world changes: which constructor keeps which sample, which hands
 * it on, and what has to be read again because its holder is gone (OVERLORD's elastic resharding,
 * arXiv:2504.09844). The samples of the step do not change, only where they go.
 */
import { TriremeError } from "@trireme/core";
import type { LoadingPlan } from "../planning/loading-plan.ts";

/** Samples that go from one constructor to another. */
export interface ReshardMove {
  readonly sample: number;
  /** Share that holds it, in the old plan. */
  readonly from: number;
  /** Share that needs it, in the new plan. */
  readonly to: number;
}

/** What becomes of the samples of a step. */
export interface Resharding {
  /** Samples that stay on their host. */
  readonly kept: readonly ReshardMove[];
  readonly moved: readonly ReshardMove[];
  /** Samples to be read again by their sources. */
  readonly reread: readonly number[];
}

/** Where constructors are: a host for each share. */
export interface ReshardOptions {
  readonly before: LoadingPlan;
  /** The same step planned on the new tree. */
  readonly after: LoadingPlan;
  /** Host of each share before; undefined for one that is gone. */
  readonly hostsBefore: readonly (number | undefined)[];
  readonly hostsAfter: readonly number[];
}

/** Compares two plans of a step. @throws TriremeError "RESHARD" where they are not of the same samples. */
export function reshard({ before, after, hostsBefore, hostsAfter }: ReshardOptions): Resharding {
  const differs = after.positions.findIndex(
    (position, i) => position !== before.positions[i] || after.sources[i] !== before.sources[i],
  );
  if (
    before.step !== after.step ||
    before.positions.length !== after.positions.length ||
    differs !== -1
  ) {
    throw new TriremeError(
      "RESHARD",
      `a plan of step ${after.step} cannot follow one of step ${before.step}: ${differs === -1 ? `${after.positions.length} samples, ${before.positions.length} before` : `sample ${differs} differs`}; plan the same state on the new tree`,
    );
  }
  if (hostsBefore.length !== before.shares || hostsAfter.length !== after.shares) {
    throw new TriremeError(
      "RESHARD",
      `hosts of ${hostsBefore.length} and ${hostsAfter.length} shares; the plans have ${before.shares} and ${after.shares}`,
    );
  }
  const result = { kept: [] as ReshardMove[], moved: [] as ReshardMove[], reread: [] as number[] };
  for (let sample = 0; sample < after.positions.length; sample++) {
    const [from, to] = [before.shareOf[sample]!, after.shareOf[sample]!];
    const holder = hostsBefore[from];
    if (holder === undefined) result.reread.push(sample);
    else if (holder === hostsAfter[to]) result.kept.push({ sample, from, to });
    else result.moved.push({ sample, from, to });
  }
  return result;
}

/** The prices a run is simulated and estimated with: timed here for this machine, else the catalogue's. */
import { formatSeconds } from "@trireme/core";
import type { StepOptions } from "@trireme/cost-model";
import type { ResolvedRun } from "@trireme/run";
import type { Parts } from "./composition.ts";
import type { LoadedRun } from "./load-run.ts";
import { measureRun } from "./local-machine.ts";

/** A run with what its operators cost. */
export interface PricedRun {
  /** With the measured machine as its cluster, where it is on this one. */
  readonly run: ResolvedRun;
  /** For `estimate` and `simulateStep`. */
  readonly options: StepOptions;
  /** How the prices were measured; undefined where they are the catalogue's. */
  readonly measured: string | undefined;
}

/** Prices a run. */
export async function priceRun(loaded: LoadedRun, parts: Parts): Promise<PricedRun> {
  if (!loaded.local) {
    const { model, plan, cluster } = loaded.run;
    return { run: loaded.run, options: { model, plan, cluster }, measured: undefined };
  }
  const { run, pricer, operators, seconds } = await measureRun(loaded.run, parts);
  const { model, plan, cluster } = run;
  return {
    run,
    options: { model, plan, cluster, pricer },
    measured: `from ${operators} operators timed here in ${formatSeconds(seconds)}`,
  };
}

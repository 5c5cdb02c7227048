/** The auto-scaler at work: looks at the weights of each step and moves sources when loaders change. */
import { weightsAt } from "../../mixture.ts";
import { type AutoScalerState, autoScale, startScaler } from "../../scaling/auto-scaler.ts";
import { partitionSources } from "../../scaling/source-partition.ts";
import type { CheckedHostOptions } from "./host-loader-options.ts";
import type { SourcePool } from "./source-pool.ts";

/** Watches the steps of one pool. */
export class ScalingLoop {
  readonly #options: CheckedHostOptions;
  readonly #pool: SourcePool;
  /** Sources that only one loader can read. */
  readonly #single: ReadonlySet<number>;
  #state: AutoScalerState | undefined;

  constructor(options: CheckedHostOptions, pool: SourcePool, single: ReadonlySet<number>) {
    this.#options = options;
    this.#pool = pool;
    this.#single = single;
  }

  /** Takes a step in; where loaders change, resolves when they have. */
  async observe(step: number): Promise<void> {
    const { scaling, planner } = this.#options;
    if (scaling === undefined) return;
    const { schedule } = planner.spec.mix;
    const now = weightsAt(schedule, step);
    const ahead = weightsAt(schedule, step + (scaling.lead ?? 10));
    const first = this.#state === undefined;
    const scaled = autoScale(scaling, this.#state ?? startScaler(scaling, now), now, ahead);
    this.#state = scaled.state;
    if (scaled.changes.length === 0 && !first) return;
    const loaders = scaled.state.loaders.map((count, source) => {
      // A source of little weight is still a source.
      const least = now[source]! > 0 || ahead[source]! > 0 ? 1 : 0;
      const most = this.#single.has(source) ? 1 : this.#options.sourceHosts;
      return Math.min(most, Math.max(least, count));
    });
    await this.#pool.rescale(
      partitionSources({
        loaders,
        loads: scaling.sources.map(({ secondsPerSample }) => secondsPerSample),
        bytes: scaling.sources.map(({ bytesPerLoader }) => bytesPerLoader),
        processes: this.#options.sourceHosts,
        before: this.#pool.partition,
      }),
    );
  }
}

/**
 * Steps on their way to the ranks of one world: planned, read, built, each as soon as every ring has
 * room for it. When the world changes, this one is stopped and another begins, over the same sources.
 */
import type { LoadingPlan } from "../../planning/loading-plan.ts";
import type { PlannerState } from "../../planning/planner.ts";
import type { HostHistory } from "./host-history.ts";
import type { CheckedHostOptions } from "./host-loader-options.ts";
import type { RankRings } from "./rank-rings.ts";
import type { ScalingLoop } from "./scaling-loop.ts";
import { ShareFeeder } from "./share-feeder.ts";
import type { SourcePool } from "./source-pool.ts";

/** What a delivery works with. */
export interface DeliveryParts {
  readonly options: CheckedHostOptions;
  readonly pool: SourcePool;
  readonly scaling: ScalingLoop;
  readonly history: HostHistory;
  readonly rings: RankRings;
}

/** Steps from a state on. */
export class Delivery {
  readonly #parts: DeliveryParts;
  readonly feeders: readonly ShareFeeder[];
  /** Resolves after the last step or when stopped; rejects with the reason why it gave up. */
  readonly done: Promise<void>;
  readonly #end: number;
  #stopped = false;

  /** Delivers the steps from `start` up to `end`, exclusive. */
  constructor(parts: DeliveryParts, start: PlannerState, end: number) {
    this.#parts = parts;
    this.#end = end;
    this.feeders = Array.from(
      parts.rings.rings,
      ([share, slices]) => new ShareFeeder(parts.options, share, slices),
    );
    this.done = this.#run(start);
    // Whoever reads batches is told as well; it must not be an unhandled rejection.
    this.done.catch(() => undefined);
  }

  /** Ends it: rings take no more, what they hold can be read. */
  stop(): void {
    this.#stopped = true;
    for (const feeder of this.feeders) feeder.close("ended");
  }

  async #run(start: PlannerState): Promise<void> {
    const delivered: Promise<void>[] = [];
    try {
      // A host whose ranks get all of their data from others has nothing to build, and nothing that
      // would hold it back.
      if (this.feeders.length === 0) return;
      let state = start;
      while (state.step < this.#end && !this.#stopped) {
        // The first delivery that fails ends the loop, whatever it waits for.
        state = await Promise.race([this.#step(state, delivered), failureOf(delivered)]);
        if (delivered.length > 2 * this.#parts.options.prefetch) await delivered.shift();
      }
      await Promise.all(delivered);
      for (const feeder of this.feeders) feeder.close("ended");
    } catch (error) {
      if (this.#stopped) return;
      for (const feeder of this.feeders) feeder.close("failed");
      throw error;
    }
  }

  /** Plans one step and sets its delivery going. */
  async #step(state: PlannerState, delivered: Promise<void>[]): Promise<PlannerState> {
    const { options, pool, scaling, history } = this.#parts;
    const { planner, prefetch } = options;
    await Promise.all(this.feeders.map((feeder) => feeder.room(state.step)));
    await scaling.observe(state.step);
    const draw = planner.draw(state);
    const plan = planner.decide(draw, await pool.describe(draw));
    // Stopped while it asked: the step belongs to another world.
    if (this.#stopped) return state;
    history.addPlan(plan, prefetch);
    history.addState(draw.next);
    const delivery = this.#deliver(plan);
    delivery.catch(() => undefined);
    delivered.push(delivery);
    return draw.next;
  }

  async #deliver(plan: LoadingPlan): Promise<void> {
    const { options, pool, history } = this.#parts;
    const parcels = await pool.read(plan, new Set(this.feeders.map(({ share }) => share)));
    await Promise.all(
      this.feeders.map((feeder) => feeder.build(plan, parcels.get(feeder.share) ?? [])),
    );
    // There was room for the step, so the ranks have all that came a round of the ring before.
    const taken = plan.step + 1 - options.prefetch;
    if (this.#stopped || !history.has(taken)) return;
    await pool.release(history.state(taken).mix.taken);
    if (taken % options.snapshotEvery === 0)
      await pool.snapshot((history.oldest() ?? history.state(taken)).mix.taken);
  }
}

/** Rejects with the first of them that does; never resolves. */
function failureOf(promises: readonly Promise<void>[]): Promise<never> {
  return new Promise((_, reject) => {
    for (const promise of promises) promise.catch(reject);
  });
}

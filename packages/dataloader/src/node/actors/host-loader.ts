/**
 * The loader of one host: source loaders that hold each source once, data constructors for the shares
 * its ranks need, rings of shared memory that the ranks read, and the planner's decisions between them.
 * (OVERLORD, arXiv:2504.09844; one loader a host feeding all its ranks: MegaScale, arXiv:2402.15627.)
 */
import { join } from "node:path";
import { TriremeError } from "@trireme/core";
import type { ShareBatch } from "../../construct/microbatch.ts";
import type { LoadingPlan } from "../../planning/loading-plan.ts";
import type { PlannerState } from "../../planning/planner.ts";
import {
  type MultiSourceIdentity,
  type MultiSourceState,
  restoreMultiSource,
} from "../../planning/planner-checkpoint.ts";
import { partitionSources } from "../../scaling/source-partition.ts";
import { createFileRing } from "./file-ring.ts";
import {
  type CheckedHostOptions,
  type HostLoaderOptions,
  checkHostOptions,
} from "./host-loader-options.ts";
import { type RankBatchOptions, type RankFeed, rankBatches } from "./rank-batches.ts";
import type { RingRef, RingShape } from "./ring.ts";
import { createRunDirectory, removeRunDirectory } from "./run-directory.ts";
import { ScalingLoop } from "./scaling-loop.ts";
import { ShareFeeder } from "./share-feeder.ts";
import { createSharedRing } from "./shared-ring.ts";
import { SourcePool } from "./source-pool.ts";
import type { Supervised } from "./supervised.ts";

/** One of the actors that run for a loader. */
export interface RunningActor {
  readonly name: string;
  /** Its process, where it has one of its own. */
  readonly pid: number | undefined;
  readonly shadow: boolean;
  /** Ends it as a crash would: for drills. */
  kill(): void;
}

/** A running loader. */
export interface HostLoader {
  /** What a rank reads from, to be sent to its thread or process. */
  feed(rank: number): RankFeed;
  /** The batches of a rank, read in this thread. */
  batches(rank: number, options?: RankBatchOptions): AsyncGenerator<ShareBatch, void, undefined>;
  /**
   * What to store so that a run goes on at `step`, on any ranks. Steps that are older than the slowest
   * rank's by more than 64, or not planned yet, are refused.
   */
  state(step: number): MultiSourceState;
  /** The plan of a step whose state is kept: its samples, their places, their lineage. */
  plan(step: number): LoadingPlan;
  /** What runs for it now. */
  actors(): readonly RunningActor[];
  /** For each source, the source hosts that its loaders are on. */
  loaders(): readonly (readonly number[])[];
  /** Actors replaced so far, and those of them by a shadow. */
  replaced(): { readonly total: number; readonly byShadow: number };
  /** Resolves after the last step, or when closed; rejects with the reason why the loader gave up. */
  readonly done: Promise<void>;
  /** Ends everything and gives memory back. */
  close(): void;
}

/** Steps whose states are kept behind the slowest rank. */
const keptSteps = 64;

/**
 * Starts a loader; resolves when all sources are open and a stored state was found to be of them.
 * @throws TriremeError on options, sources or a state that do not fit.
 */
export async function startHostLoader(options: HostLoaderOptions): Promise<HostLoader> {
  const checked = checkHostOptions(options);
  const directory = checked.actors === "process" ? createRunDirectory() : undefined;
  const loader = new RunningLoader(checked, directory);
  try {
    await loader.open();
  } catch (error) {
    loader.close();
    throw error;
  }
  return loader;
}

class RunningLoader implements HostLoader {
  readonly #options: CheckedHostOptions;
  readonly #directory: string | undefined;
  readonly #pool: SourcePool;
  #feeders: readonly ShareFeeder[] = [];
  readonly #feeds = new Map<number, RankFeed>();
  readonly #relays = new Map<number, number>();
  readonly #states = new Map<number, PlannerState>();
  readonly #plans = new Map<number, LoadingPlan>();
  #identity: MultiSourceIdentity | undefined;
  #scaling: ScalingLoop | undefined;
  #closed = false;
  #done: Promise<void> = Promise.resolve();

  constructor(options: CheckedHostOptions, directory: string | undefined) {
    this.#options = options;
    this.#directory = directory;
    const { sources, seed, actors: kind, sourceHosts, shadows, deadline, attempts } = options;
    const stored = (options.state ?? {}) as Partial<MultiSourceState>;
    this.#pool = new SourcePool({
      specs: sources,
      seed,
      kind,
      directory,
      partition: partitionSources({ loaders: sources.map(() => 1), processes: sourceHosts }),
      shadows,
      snapshots: stored.snapshots ?? {},
      deadline,
      attempts,
    });
  }

  get done(): Promise<void> {
    return this.#done;
  }

  async open(): Promise<void> {
    const { planner, sources, seed, construct, state } = this.#options;
    const opened = await this.#pool.opened();
    this.#identity = {
      sources: Object.fromEntries(
        sources.map(({ name }, source) => [name, opened.get(source)!.fingerprint]),
      ),
      globalBatch: planner.spec.globalBatch,
      seed,
      sequence: construct.sequence,
    };
    const start =
      state === undefined ? planner.start() : restoreMultiSource(state, this.#identity).planner;
    this.#feeders = this.#openShares(start.step);
    const single = new Set(
      [...opened.values()].flatMap(({ source, sequential }) => (sequential ? [source] : [])),
    );
    this.#scaling = new ScalingLoop(this.#options, this.#pool, single);
    this.#states.set(start.step, start);
    this.#done = this.#run(start);
    // Whoever reads batches is told as well; it must not be an unhandled rejection.
    this.#done.catch(() => undefined);
  }

  feed(rank: number): RankFeed {
    const feed = this.#feeds.get(rank);
    if (feed !== undefined) return feed;
    const from = this.#relays.get(rank);
    throw new TriremeError(
      "HOST_LOADER",
      from === undefined
        ? `rank ${rank} is not on this host, which has ${[...this.#feeds.keys()].join(", ")}`
        : `rank ${rank} gets its data from rank ${from}, as the program broadcasts along ${this.#options.planner.spec.broadcast.join(", ")}`,
    );
  }

  batches(rank: number, options?: RankBatchOptions): AsyncGenerator<ShareBatch, void, undefined> {
    return rankBatches(this.feed(rank), options);
  }

  state(step: number): MultiSourceState {
    const planner = this.#kept(this.#states, step);
    const snapshots = this.#pool.snapshotsAt(planner.mix.taken);
    return { version: 1, ...this.#identity!, planner, snapshots };
  }

  plan(step: number): LoadingPlan {
    return this.#kept(this.#plans, step);
  }

  actors(): readonly RunningActor[] {
    return this.#supervised().flatMap(({ actor, shadow }) =>
      [actor, shadow].flatMap((one, k) =>
        one === undefined
          ? []
          : [{ name: one.name, pid: one.pid, shadow: k === 1, kill: () => one.kill() }],
      ),
    );
  }

  loaders(): readonly (readonly number[])[] {
    return this.#pool.partition.processesOf;
  }

  replaced(): { readonly total: number; readonly byShadow: number } {
    return this.#supervised().reduce(
      (sum, { replaced, takenOver }) => ({
        total: sum.total + replaced,
        byShadow: sum.byShadow + takenOver,
      }),
      { total: 0, byShadow: 0 },
    );
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#pool.close();
    for (const feeder of this.#feeders) feeder.close("ended");
    if (this.#directory !== undefined) removeRunDirectory(this.#directory);
  }

  #supervised(): readonly Supervised[] {
    return [...this.#pool.hosts, ...this.#feeders.map(({ supervised }) => supervised)];
  }

  #kept<T>(map: ReadonlyMap<number, T>, step: number): T {
    const found = map.get(step);
    if (found !== undefined) return found;
    const steps = [...map.keys()];
    throw new TriremeError(
      "HOST_LOADER",
      `step ${step} is not kept; kept are ${steps[0] ?? "none"} to ${steps.at(-1) ?? "none"}`,
    );
  }

  /** A ring for each slice that local ranks read, a feeder for each share of them. */
  #openShares(firstStep: number): readonly ShareFeeder[] {
    const { planner, ranks, prefetch: slots, slotWords } = this.#options;
    const { tree } = planner.spec;
    const local = new Set(ranks);
    const rings = new Map<number, (RingRef | undefined)[]>();
    for (const { share, slice, readers, relays } of planner.deliveries) {
      for (const [from, to] of relays) if (local.has(to)) this.#relays.set(to, from);
      const here = readers.filter((rank) => local.has(rank));
      if (here.length === 0) continue;
      const name = `share ${share}, slice ${slice}`;
      const shape: RingShape = { name, firstStep, slots, slotWords, readers: here };
      const ring =
        this.#directory === undefined
          ? createSharedRing(shape)
          : createFileRing(shape, join(this.#directory, `${share}-${slice}.ring`));
      const slices =
        rings.get(share) ?? new Array<RingRef | undefined>(tree.slices).fill(undefined);
      slices[slice] = ring;
      rings.set(share, slices);
      here.forEach((rank, reader) => this.#feeds.set(rank, { rank, ring, reader }));
    }
    return [...rings].map(([share, slices]) => new ShareFeeder(this.#options, share, slices));
  }

  async #run(start: PlannerState): Promise<void> {
    const delivered: Promise<void>[] = [];
    try {
      let state = start;
      const end = start.step + this.#options.steps;
      while (state.step < end && !this.#closed) {
        // The first delivery that fails ends the loop, whatever it waits for.
        state = await Promise.race([this.#step(state, delivered), failureOf(delivered)]);
        if (delivered.length > 2 * this.#options.prefetch) await delivered.shift();
      }
      await Promise.all(delivered);
      for (const feeder of this.#feeders) feeder.close("ended");
    } catch (error) {
      if (this.#closed) return;
      for (const feeder of this.#feeders) feeder.close("failed");
      throw error;
    } finally {
      this.#pool.close();
    }
  }

  /** Plans one step and sets its delivery going, as soon as every ring has room for it. */
  async #step(state: PlannerState, delivered: Promise<void>[]): Promise<PlannerState> {
    const { planner } = this.#options;
    await Promise.all(this.#feeders.map((feeder) => feeder.room(state.step)));
    await this.#scaling!.observe(state.step);
    const draw = planner.draw(state);
    const plan = planner.decide(draw, await this.#pool.describe(draw));
    this.#plans.set(state.step, plan);
    this.#states.set(state.step + 1, draw.next);
    const delivery = this.#deliver(plan, draw.next);
    delivery.catch(() => undefined);
    delivered.push(delivery);
    const oldest = state.step - this.#options.prefetch - keptSteps;
    this.#plans.delete(oldest);
    this.#states.delete(oldest);
    return draw.next;
  }

  async #deliver(plan: LoadingPlan, after: PlannerState): Promise<void> {
    const { snapshotEvery } = this.#options;
    const parcels = await this.#pool.read(plan, new Set(this.#feeders.map(({ share }) => share)));
    await Promise.all(
      this.#feeders.map((feeder) => feeder.build(plan, parcels.get(feeder.share) ?? [])),
    );
    await this.#pool.release(after.mix.taken);
    if (after.step % snapshotEvery === 0) {
      const oldest = this.#states.values().next().value ?? after;
      await this.#pool.snapshot(oldest.mix.taken);
    }
  }
}

/** Rejects with the first of them that does; never resolves. */
function failureOf(promises: readonly Promise<void>[]): Promise<never> {
  return new Promise((_, reject) => {
    for (const promise of promises) promise.catch(reject);
  });
}

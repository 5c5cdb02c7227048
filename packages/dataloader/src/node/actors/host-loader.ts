/**
 * The loader of one host: source loaders that hold each source once, data constructors for the shares
 * its ranks need, rings of shared memory that the ranks read, and the planner's decisions between them.
 * (OVERLORD, arXiv:2504.09844; one loader a host feeding all its ranks: MegaScale, arXiv:2402.15627.)
 */
import { TriremeError } from "@trireme/core";
import type { ShareBatch } from "../../construct/microbatch.ts";
import type { LoadingPlan } from "../../planning/loading-plan.ts";
import {
  type MultiSourceIdentity,
  type MultiSourceState,
  restoreMultiSource,
} from "../../planning/planner-checkpoint.ts";
import type { Planner, PlannerState } from "../../planning/planner.ts";
import { partitionSources } from "../../scaling/source-partition.ts";
import { Delivery } from "./delivery.ts";
import { HostHistory } from "./host-history.ts";
import { type HostLoaderOptions, checkHostOptions } from "./host-loader-options.ts";
import { type RankBatchOptions, type RankFeed, rankBatches } from "./rank-batches.ts";
import { type RankRings, createRankRings } from "./rank-rings.ts";
import { createRunDirectory, removeRunDirectory } from "./run-directory.ts";
import { ScalingLoop } from "./scaling-loop.ts";
import type { OpenedSource } from "./source-host.ts";
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

/** A planner on another tree, and the ranks of it on this host; default all. */
export interface World {
  readonly planner: Planner;
  readonly ranks?: readonly number[];
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
  /**
   * Goes on at `step` for other ranks, as when the world has changed: rings, constructors and places are
   * made anew, sources stay open and are not read again where they hold what is needed. The streams of
   * before end with what they have. `step` is one that no rank of the new world has had, and one whose
   * state is kept; of sources that can only be read on, it is no older than the slowest rank's next.
   * One call at a time; where the new world cannot be begun, the loader has ended.
   */
  reshape(step: number, world: World): Promise<void>;
  /** What runs for it now. */
  actors(): readonly RunningActor[];
  /** For each source, the source hosts that its loaders are on. */
  loaders(): readonly (readonly number[])[];
  /** Actors replaced so far, and those of them by a shadow. */
  replaced(): { readonly total: number; readonly byShadow: number };
  /**
   * Resolves after the last step, when closed, or at once where no rank here reads (all are passed
   * their data by others); rejects with the reason why the loader gave up.
   */
  readonly done: Promise<void>;
  /** Ends everything and gives memory back. */
  close(): void;
}

/**
 * Starts a loader; resolves when all sources are open and a stored state was found to be of them.
 * @throws TriremeError on options, sources or a state that do not fit.
 */
export async function startHostLoader(options: HostLoaderOptions): Promise<HostLoader> {
  const { actors, sources, seed, sourceHosts, shadows, deadline, attempts, state } =
    checkHostOptions(options);
  const directory = actors === "process" ? createRunDirectory() : undefined;
  const pool = new SourcePool({
    specs: sources,
    seed,
    kind: actors,
    directory,
    partition: partitionSources({ loaders: sources.map(() => 1), processes: sourceHosts }),
    shadows,
    snapshots: snapshotsOf(state),
    deadline,
    attempts,
  });
  try {
    return new RunningLoader(options, pool, await pool.opened(), directory);
  } catch (error) {
    pool.close();
    if (directory !== undefined) removeRunDirectory(directory);
    throw error;
  }
}

/** The snapshots of a stored state; whether it is one is checked when the sources are open. */
function snapshotsOf(state: unknown): MultiSourceState["snapshots"] {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- restoreMultiSource checks the rest
  return ((state ?? {}) as Partial<MultiSourceState>).snapshots ?? {};
}

class RunningLoader implements HostLoader {
  readonly done: Promise<void>;
  readonly #given: HostLoaderOptions;
  readonly #pool: SourcePool;
  readonly #directory: string | undefined;
  readonly #identity: MultiSourceIdentity;
  /** Sources that only one loader can read. */
  readonly #single: ReadonlySet<number>;
  readonly #history = new HostHistory();
  readonly #end: number;
  #rings: RankRings;
  #delivery: Delivery;
  #generation = 0;
  #reshaping = false;
  #closed = false;
  /** Whether it has come to its last step, given up or been closed: its sources are closed then. */
  #ended = false;
  #settle: { resolve: () => void; reject: (error: unknown) => void } | undefined;

  constructor(
    given: HostLoaderOptions,
    pool: SourcePool,
    opened: ReadonlyMap<number, OpenedSource>,
    directory: string | undefined,
  ) {
    this.#given = given;
    this.#pool = pool;
    this.#directory = directory;
    const { planner, sources, seed, construct, state, steps } = checkHostOptions(given);
    this.#identity = {
      sources: Object.fromEntries(
        sources.map(({ name }, source) => [name, opened.get(source)!.fingerprint]),
      ),
      globalBatch: planner.spec.globalBatch,
      seed,
      sequence: construct.sequence,
    };
    this.#single = new Set(
      [...opened.values()].flatMap(({ source, sequential }) => (sequential ? [source] : [])),
    );
    const start =
      state === undefined ? planner.start() : restoreMultiSource(state, this.#identity).planner;
    this.#end = start.step + steps;
    this.#history.addState(start);
    this.done = new Promise((resolve, reject) => (this.#settle = { resolve, reject }));
    // Whoever reads batches is told as well; it must not be an unhandled rejection.
    this.done.catch(() => undefined);
    [this.#rings, this.#delivery] = this.#begin(given, start);
  }

  feed(rank: number): RankFeed {
    return this.#rings.feed(rank);
  }

  batches(rank: number, options?: RankBatchOptions): AsyncGenerator<ShareBatch, void, undefined> {
    return rankBatches(this.feed(rank), options);
  }

  state(step: number): MultiSourceState {
    const planner = this.#history.state(step);
    const snapshots = this.#pool.snapshotsAt(planner.mix.taken);
    return { version: 1, ...this.#identity, planner, snapshots };
  }

  plan(step: number): LoadingPlan {
    return this.#history.plan(step);
  }

  async reshape(step: number, { planner, ranks }: World): Promise<void> {
    const { ranks: _, ...given } = this.#given;
    const world = { ...given, planner, ...(ranks === undefined ? {} : { ranks }) };
    const start = this.#history.state(step);
    const { globalBatch } = this.#identity;
    if (planner.spec.globalBatch !== globalBatch) {
      throw new TriremeError(
        "HOST_LOADER",
        `a global batch of ${planner.spec.globalBatch} cannot follow one of ${globalBatch} in one order of samples`,
      );
    }
    checkHostOptions(world);
    if (this.#ended) throw new TriremeError("HOST_LOADER", "the loader has ended; start another");
    if (this.#reshaping)
      throw new TriremeError("HOST_LOADER", "the loader is being reshaped; await that first");
    const before = this.#delivery;
    this.#generation++;
    this.#reshaping = true;
    try {
      before.stop();
      await before.done.catch(() => undefined);
      if (this.#closed) throw new TriremeError("HOST_LOADER", "the loader was closed meanwhile");
      this.#history.rewind(step);
      [this.#rings, this.#delivery] = this.#begin(world, start);
    } catch (error) {
      // The world before is gone and none has followed: whoever waits for the loader must know.
      if (!this.#closed) {
        this.#ended = true;
        this.#pool.close();
        this.#settle?.reject(error);
      }
      throw error;
    } finally {
      this.#reshaping = false;
    }
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
    this.#ended = true;
    this.#pool.close();
    this.#delivery.stop();
    this.#settle?.resolve();
    if (this.#directory !== undefined) removeRunDirectory(this.#directory);
  }

  #supervised(): readonly Supervised[] {
    return [...this.#pool.hosts, ...this.#delivery.feeders.map(({ supervised }) => supervised)];
  }

  /** Begins to deliver to a world. */
  #begin(world: HostLoaderOptions, start: PlannerState): [RankRings, Delivery] {
    const options = checkHostOptions(world);
    const generation = this.#generation;
    const rings = createRankRings(options, start.step, this.#directory, generation);
    const [pool, history] = [this.#pool, this.#history];
    const scaling = new ScalingLoop(options, pool, this.#single);
    const delivery = new Delivery({ options, pool, scaling, history, rings }, start, this.#end);
    // The end of a world that another has followed is not the loader's.
    const last = (settle: () => void): void => {
      if (generation !== this.#generation) return;
      this.#ended = true;
      pool.close();
      settle();
    };
    delivery.done.then(
      () => last(() => this.#settle?.resolve()),
      (error: unknown) => last(() => this.#settle?.reject(error)),
    );
    return [rings, delivery];
  }
}

/**
 * The source loaders of a host: which process or thread holds which source, what is asked of whom, and
 * where sources that can only be read on would begin again.
 */
import { type Seconds, TriremeError } from "@trireme/core";
import type { LoadingPlan } from "../../planning/loading-plan.ts";
import type { PlannerDraw } from "../../planning/planner.ts";
import type { SampleMetadata } from "../../planning/sample-costs.ts";
import type { SourcePartition } from "../../scaling/source-partition.ts";
import { type SourceSnapshot, sourceSeed } from "../../sources/sample-source.ts";
import { type Actor, type ActorKind, startActor } from "./actor.ts";
import type { SourceSpec } from "./open-source.ts";
import type { Parcel } from "./parcel.ts";
import type { OpenedSource, SourceAnswers, SourceMessage, SourceToOpen } from "./source-host.ts";
import { Supervised } from "./supervised.ts";

/** What a pool is made of. */
export interface SourcePoolOptions {
  readonly specs: readonly SourceSpec[];
  readonly seed: number;
  readonly kind: ActorKind;
  /** Where parcels go as files; undefined for shared memory. */
  readonly directory: string | undefined;
  readonly partition: SourcePartition;
  /** Hosts with a shadow. */
  readonly shadows: readonly number[];
  readonly snapshots: Readonly<Record<string, SourceSnapshot>>;
  readonly deadline: Seconds;
  readonly attempts: number;
}

/** Source loaders, supervised. */
export class SourcePool {
  readonly #options: SourcePoolOptions;
  readonly #hosts: readonly Supervised[];
  /** Sources that each host is to have open. */
  readonly #held: readonly Set<number>[];
  /** Snapshots of each source, oldest first. */
  readonly #snapshots = new Map<number, SourceSnapshot[]>();
  #partition: SourcePartition;
  #calls = new Set<Promise<unknown>>();
  #rescaling: Promise<void> = Promise.resolve();

  constructor(options: SourcePoolOptions) {
    this.#options = options;
    this.#partition = options.partition;
    options.specs.forEach(({ name }, source) => {
      const snapshot = options.snapshots[name];
      if (snapshot !== undefined) this.#snapshots.set(source, [snapshot]);
    });
    const hosts = options.partition.loads.length;
    this.#held = Array.from({ length: hosts }, (_, host) =>
      this.#sourcesAt(options.partition, host),
    );
    this.#hosts = this.#held.map(
      (_, host) =>
        new Supervised({
          start: () => this.#start(host),
          shadow: options.shadows.includes(host),
          deadline: options.deadline,
          attempts: options.attempts,
        }),
    );
  }

  /** Waits until all sources are open; tells of each, by its number. */
  async opened(): Promise<ReadonlyMap<number, OpenedSource>> {
    const lists = await Promise.all(
      this.#hosts.map((_, host) => this.#ask(host, { kind: "opened" }, "opening its sources")),
    );
    return new Map(lists.flat().map((opened) => [opened.source, opened]));
  }

  get partition(): SourcePartition {
    return this.#partition;
  }

  get hosts(): readonly Supervised[] {
    return this.#hosts;
  }

  /** Metadata of a draw, in its order. */
  async describe({ step, sources, positions }: PlannerDraw): Promise<readonly SampleMetadata[]> {
    const metadata: SampleMetadata[] = [];
    await Promise.all(
      this.#byHost(sources, positions).map(async (samples, host) => {
        if (samples.length === 0) return;
        const message: SourceMessage = {
          kind: "describe",
          sources: Int32Array.from(samples, (i) => sources[i]!),
          positions: Float64Array.from(samples, (i) => positions[i]!),
        };
        void this.#hosts[host]!.mirror(message);
        const found = await this.#ask(host, message, `describing step ${step}`);
        samples.forEach((sample, k) => (metadata[sample] = found[k]!));
      }),
    );
    return metadata;
  }

  /** The samples of each share that is wanted, as parcels. */
  async read(
    plan: LoadingPlan,
    shares: ReadonlySet<number>,
  ): Promise<ReadonlyMap<number, readonly Parcel[]>> {
    const parcels = new Map(Array.from(shares, (share) => [share, [] as Parcel[]]));
    const { step, sources, positions, shareOf } = plan;
    const reads = this.#byHost(sources, positions).flatMap((samples, host) =>
      Array.from(parcels, async ([share, into]) => {
        const mine = samples.filter((sample) => shareOf[sample] === share);
        if (mine.length === 0) return;
        const message: SourceMessage = {
          kind: "read",
          samples: Int32Array.from(mine),
          sources: Int32Array.from(mine, (i) => sources[i]!),
          positions: Float64Array.from(mine, (i) => positions[i]!),
        };
        into.push(await this.#ask(host, message, `reading step ${step}`));
      }),
    );
    await Promise.all(reads);
    return parcels;
  }

  /** Positions below which nothing will be asked for again, by source. */
  async release(taken: readonly number[]): Promise<void> {
    await Promise.all(
      this.#held.map(async (held, host) => {
        const sources = Int32Array.from(held);
        const positions = Float64Array.from(sources, (source) => taken[source]!);
        const message: SourceMessage = { kind: "release", sources, positions };
        void this.#hosts[host]!.mirror(message);
        await this.#ask(host, message, "releasing samples");
      }),
    );
  }

  /** Takes snapshots; forgets those that no state from `oldest` on would begin from. */
  async snapshot(oldest: readonly number[]): Promise<void> {
    const lists = await Promise.all(
      this.#hosts.map((_, host) => this.#ask(host, { kind: "snapshot" }, "taking snapshots")),
    );
    for (const { source, snapshot } of lists.flat()) {
      const before = this.#snapshots.get(source) ?? [];
      // A host started anew begins at the last snapshot; its own is no later.
      if (snapshot.position > (before.at(-1)?.position ?? -1)) before.push(snapshot);
      while (before.length > 1 && before[1]!.position <= oldest[source]!) before.shift();
      this.#snapshots.set(source, before);
    }
  }

  /** The latest snapshots from which the given positions can be read, by name. */
  snapshotsAt(taken: readonly number[]): Record<string, SourceSnapshot> {
    return Object.fromEntries(
      [...this.#snapshots].flatMap(([source, list]) => {
        const found = list.findLast(({ position }) => position <= taken[source]!);
        return found === undefined ? [] : [[this.#options.specs[source]!.name, found] as const];
      }),
    );
  }

  /**
   * Moves to another partition: sources are opened where they go, then asked there, and closed where
   * they were when the last question to there is answered.
   */
  rescale(partition: SourcePartition): Promise<void> {
    this.#rescaling = this.#rescaling.then(() => this.#rescale(partition));
    return this.#rescaling;
  }

  close(): void {
    for (const host of this.#hosts) host.close();
  }

  async #rescale(partition: SourcePartition): Promise<void> {
    const wanted = this.#held.map((_, host) => this.#sourcesAt(partition, host));
    await Promise.all(
      wanted.map(async (sources, host) => {
        const added = [...sources].filter((source) => !this.#held[host]!.has(source));
        if (added.length === 0) return;
        for (const source of added) this.#held[host]!.add(source);
        const message: SourceMessage = { kind: "open", sources: this.#toOpen(added) };
        void this.#hosts[host]!.mirror(message);
        await this.#ask(host, message, "opening sources");
      }),
    );
    this.#partition = partition;
    await Promise.allSettled(this.#calls);
    await Promise.all(
      wanted.map(async (sources, host) => {
        const left = [...this.#held[host]!].filter((source) => !sources.has(source));
        if (left.length === 0) return;
        for (const source of left) this.#held[host]!.delete(source);
        const message: SourceMessage = { kind: "close", sources: left };
        void this.#hosts[host]!.mirror(message);
        await this.#ask(host, message, "closing sources");
      }),
    );
  }

  #start(host: number): Actor {
    const { kind, directory } = this.#options;
    const sources = this.#toOpen([...this.#held[host]!]);
    return startActor(kind, `source host ${host}`, { role: "sources", sources, directory });
  }

  #toOpen(sources: readonly number[]): readonly SourceToOpen[] {
    const { specs, seed } = this.#options;
    return sources.map((source) => {
      const spec = specs[source]!;
      const snapshot = this.#snapshots.get(source)?.at(-1);
      const opening = { source, spec, seed: sourceSeed(seed, spec.name) };
      return snapshot === undefined ? opening : { ...opening, snapshot };
    });
  }

  #sourcesAt(partition: SourcePartition, host: number): Set<number> {
    return new Set(
      partition.processesOf.flatMap((hosts, source) => (hosts.includes(host) ? [source] : [])),
    );
  }

  /** Samples by the host that is asked: positions of one source go round its loaders. */
  #byHost(sources: Int32Array, positions: Float64Array): readonly number[][] {
    const samples = this.#hosts.map((): number[] => []);
    sources.forEach((source, sample) => {
      const hosts = this.#partition.processesOf[source]!;
      const host = hosts[positions[sample]! % hosts.length];
      if (host === undefined) {
        throw new TriremeError(
          "SOURCE",
          `source ${this.#options.specs[source]!.name} is wanted, but has no loader`,
        );
      }
      samples[host]!.push(sample);
    });
    return samples;
  }

  async #ask<M extends SourceMessage>(
    host: number,
    message: M,
    what: string,
  ): Promise<SourceAnswers[M["kind"]]> {
    const names = [...this.#held[host]!].map((source) => this.#options.specs[source]!.name);
    const shown = names.length > 3 ? `${names.slice(0, 3).join(", ")}, …` : names.join(", ");
    const call = this.#hosts[host]!.ask(message, `${what} on source host ${host} (${shown})`);
    this.#calls.add(call);
    try {
      // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the host answers each question so
      return (await call) as SourceAnswers[M["kind"]];
    } finally {
      this.#calls.delete(call);
    }
  }
}

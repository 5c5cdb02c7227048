/**
 * The loader of a host over the generations of a run: one for all ranks of the host, as long as its
 * generation lives and no longer. Ranks get their places at its rings, which are plain data: shared memory
 * for threads, files in memory for processes. What goes on inside is `@trireme/dataloader/node`'s.
 */
import { TriremeError } from "@trireme/core";
import {
  type HostLoader,
  type HostLoaderOptions,
  type RankFeed,
  startHostLoader,
} from "@trireme/dataloader/node";

/** Told that a loader gave up while its generation lives, whose ranks would wait in vain. */
export type LoaderFailure = (generation: number, error: Error) => void;

/** The loader of whatever generation is running; one of these a host. */
export class GenerationLoader {
  readonly #failed: LoaderFailure;
  /** Highest number begun or ended: what is not above it comes too late. */
  #newest = -1;
  /** The generation that is to run. */
  #wanted: number | undefined;
  #loader: HostLoader | undefined;

  constructor(failed: LoaderFailure) {
    this.#failed = failed;
  }

  /** The loader of the running generation; undefined where none runs. */
  get loader(): HostLoader | undefined {
    return this.#loader;
  }

  /**
   * Ends the loader of the generation before and starts this one's, by what its layout and the state it
   * goes on from ask for. Resolves to the feed of each rank of the host once all sources are open; ranks
   * that are sent their data by another rank (`broadcastAt`) have none.
   * @throws TriremeError "GENERATION" where the number is not above every other, or where the generation
   * is over before its loader has started; and what `startHostLoader` throws.
   */
  async begin(
    generation: number,
    options: HostLoaderOptions,
  ): Promise<ReadonlyMap<number, RankFeed>> {
    if (!Number.isSafeInteger(generation) || generation <= this.#newest) {
      const rule = `it is an integer above ${this.#newest}, the last one begun or ended`;
      throw new TriremeError("GENERATION", `generation ${generation} is not new: ${rule}`);
    }
    this.#stop();
    this.#newest = generation;
    this.#wanted = generation;
    const loader = await startHostLoader(options);
    if (this.#wanted !== generation) {
      loader.close();
      const message = `generation ${generation} was over before its loader had started`;
      throw new TriremeError("GENERATION", message);
    }
    this.#loader = loader;
    loader.done.catch((error: unknown) => {
      // A loader that was closed with its generation is no news.
      if (this.#loader !== loader) return;
      this.#failed(generation, error instanceof Error ? error : new Error(String(error)));
    });
    return feedsOf(loader, options);
  }

  /** Ends a generation and those before it; of one that is over already, does nothing. */
  end(generation: number): void {
    if (this.#wanted !== undefined && this.#wanted <= generation) this.#stop();
    this.#newest = Math.max(this.#newest, generation);
  }

  /** Ends whatever runs. */
  close(): void {
    this.end(this.#newest);
  }

  #stop(): void {
    const loader = this.#loader;
    this.#wanted = undefined;
    this.#loader = undefined;
    loader?.close();
  }
}

function feedsOf(
  loader: HostLoader,
  { planner, ranks }: HostLoaderOptions,
): ReadonlyMap<number, RankFeed> {
  const own = ranks === undefined ? undefined : new Set(ranks);
  const readers = planner.deliveries
    .flatMap((delivery) => delivery.readers)
    .filter((rank) => own?.has(rank) ?? true);
  return new Map(readers.map((rank) => [rank, loader.feed(rank)]));
}

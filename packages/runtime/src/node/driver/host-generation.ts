/**
 * What a host runs in one generation: the loader that feeds its ranks, then its workers, what they ask
 * and say, and its end. Nothing of it lives on when `takeDown` has resolved.
 */
import type { Seconds } from "@trireme/core";
import type { HostLoaderOptions, RankFeed } from "@trireme/dataloader/node";
import type { Order } from "@trireme/fault-tolerance";
import type { AgentMachine } from "../../driver/agent-machine.ts";
import type { Launch } from "../../driver/launch.ts";
import type { Failure } from "../../driver/message.ts";
import type { GenerationLoader } from "../generation-loader.ts";
import type { AgentOptions } from "./agent.ts";
import type { Clock } from "./clock.ts";
import { type WorkerOutcome, hasObeyed } from "./running-worker.ts";
import { WorkerSet } from "./worker-set.ts";
import type { WorkerWord } from "./worker-word.ts";

export interface HostGenerationOptions {
  readonly agent: AgentOptions;
  readonly machine: AgentMachine;
  /** Starts the loaders of this host. */
  readonly loaders: GenerationLoader;
  readonly clock: Clock;
  /** Mark of the process tree. */
  readonly mark: string;
  readonly launch: Launch;
  readonly order: Order & { kind: "train" };
  /** There is something to report. */
  readonly changed: () => void;
  readonly failed: (failure: Failure) => void;
  readonly metrics: (rank: number, word: WorkerWord & { kind: "metrics" }) => void;
  readonly line: (rank: number, stream: "stdout" | "stderr", line: string) => void;
}

const noFeeds: ReadonlyMap<number, RankFeed> = new Map();

export class HostGeneration {
  readonly #options: HostGenerationOptions;
  #workers: WorkerSet | undefined;
  /** Local ranks whose request to begin a step waits for an agreed stop, with that step. */
  readonly #waiting = new Map<number, number>();
  readonly #asked = new Set<number>();
  readonly #ended = new Set<number>();
  #over = false;

  constructor(options: HostGenerationOptions) {
    this.#options = options;
    if (options.agent.loader === undefined) this.#startWorkers(noFeeds);
    else void this.#startFed(options.agent.loader);
  }

  get number(): number {
    return this.#options.launch.generation;
  }

  /** The loader first, so that a worker finds its feed; its failure is one of the software. */
  async #startFed(loader: Exclude<AgentOptions["loader"], undefined>): Promise<void> {
    const { launch, order, loaders } = this.#options;
    try {
      const start = { launch, step: order.step, skip: order.skip ?? 0 };
      const options = await loader(start);
      if (this.#over) return;
      const feeds = await loaders.begin(this.number, this.#completed(options));
      if (!this.#over) this.#startWorkers(feeds);
    } catch (error) {
      this.loaderFailed(error instanceof Error ? error : new Error(String(error)));
    }
  }

  /** This host's ranks, and actors whose rings its workers can read. */
  #completed(options: HostLoaderOptions): HostLoaderOptions {
    const { agent, launch } = this.#options;
    const member = launch.members.find(({ host }) => host === agent.host);
    const { firstRank = 0, ranks = 0 } = member ?? {};
    return {
      ranks: Array.from({ length: ranks }, (_, local) => firstRank + local),
      actors: agent.worker.kind,
      ...options,
    };
  }

  loaderFailed(error: Error): void {
    if (this.#over) return;
    const reason = `the data loader of host ${this.#options.agent.host} failed: ${error.message}`;
    const rank = this.#options.machine.rank(0);
    this.#options.failed({ kind: "declared", rank, scope: "software", reason });
  }

  #startWorkers(feeds: ReadonlyMap<number, RankFeed>): void {
    const { agent, machine, clock, mark, launch, order } = this.#options;
    const { run, host, worker, stallDeadline = Infinity } = agent;
    this.#workers = new WorkerSet({
      run,
      host,
      launch,
      order,
      command: worker,
      feeds,
      mark,
      clock,
      stallDeadline,
      word: (localRank, word) => this.#hear(localRank, word),
      line: (localRank, stream, line) => this.#options.line(machine.rank(localRank), stream, line),
      ended: (localRank, outcome) => this.#workerEnded(localRank, outcome),
      stalled: (localRank, seconds) =>
        this.#options.failed({
          kind: "stall",
          rank: machine.rank(localRank),
          step: machine.begun(localRank),
          seconds,
        }),
    });
  }

  #hear(localRank: number, word: WorkerWord): void {
    const { machine } = this.#options;
    const rank = machine.rank(localRank);
    switch (word.kind) {
      case "begin":
        this.#grant(localRank, word.step);
        return;
      case "loader-state":
        this.#tellState(localRank, word.step);
        return;
      case "saved":
        machine.saved(localRank, word.step);
        return;
      case "metrics":
        this.#options.metrics(rank, word);
        return;
      case "fault": {
        const { scope, reason } = word;
        this.#options.failed({ kind: "declared", rank, scope, reason });
      }
    }
  }

  #grant(localRank: number, step: number): void {
    const may = this.#options.machine.mayBegin(localRank, step);
    if (may === "wait") this.#waiting.set(localRank, step);
    else this.#workers?.answer(localRank, { kind: may });
  }

  #tellState(localRank: number, step: number): void {
    const { loaders, order, agent } = this.#options;
    const tell = (): unknown => {
      if (loaders.loader !== undefined) return loaders.loader.state(step + (order.skip ?? 0));
      throw new Error(`host ${agent.host} has no data loader`);
    };
    try {
      this.#workers?.answer(localRank, { kind: "loader-state", state: tell() });
    } catch (error) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#workers?.answer(localRank, { kind: "refused", reason });
    }
  }

  /** The last step is agreed on: answers those who wait, and asks those to end who never would. */
  release(): void {
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    for (const [localRank, step] of waiting) this.#grant(localRank, step);
    for (const localRank of this.#workers?.mute ?? []) {
      this.#asked.add(localRank);
      this.#workers?.askToEnd(localRank);
    }
  }

  #workerEnded(localRank: number, outcome: WorkerOutcome): void {
    const { machine, loaders, agent, failed, changed } = this.#options;
    const asked = this.#asked.has(localRank) && hasObeyed(outcome);
    if (!asked && !(outcome.kind === "exit" && outcome.code === 0)) {
      failed({ ...outcome, rank: machine.rank(localRank) });
      return;
    }
    machine.ended(localRank);
    this.#ended.add(localRank);
    if (this.#ended.size === agent.ranks) loaders.end(this.number);
    changed();
  }

  /** Workers first: one that sees its data end would take the run for done. */
  async takeDown(grace: Seconds): Promise<void> {
    this.#over = true;
    try {
      await this.#workers?.takeDown(grace);
    } finally {
      this.#options.loaders.end(this.number);
    }
  }
}

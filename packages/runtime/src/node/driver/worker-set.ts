/** The workers of one host in one generation: started together, watched, taken down together. */
import type { Seconds } from "@trireme/core";
import { TriremeError } from "@trireme/core";
import type { RankFeed } from "@trireme/dataloader/node";
import type { Order } from "@trireme/fault-tolerance";
import { type Launch, rankEnvironment } from "../../driver/launch.ts";
import type { Clock } from "./clock.ts";
import { killTree, processesOf, treeVariable } from "./process-tree.ts";
import type {
  RunningWorker,
  WorkerCommand,
  WorkerEvents,
  WorkerOutcome,
} from "./running-worker.ts";
import { startWorkerProcess } from "./worker-process.ts";
import { startWorkerThread } from "./worker-thread.ts";
import { type AgentWord, type WorkerWord, parseWorkerWord } from "./worker-word.ts";

export interface WorkerSetOptions {
  readonly run: string;
  readonly host: number;
  readonly launch: Launch;
  readonly order: Order & { kind: "train" };
  readonly command: WorkerCommand;
  /** By rank: what it reads its batches from, where this host has a loader. */
  readonly feeds: ReadonlyMap<number, RankFeed>;
  /** Mark of the process tree. */
  readonly mark: string;
  readonly clock: Clock;
  /** Silence of a worker that has spoken before which is a stall; Infinity for never. */
  readonly stallDeadline: Seconds;
  readonly word: (localRank: number, word: WorkerWord) => void;
  readonly line: (localRank: number, stream: "stdout" | "stderr", line: string) => void;
  readonly ended: (localRank: number, outcome: WorkerOutcome) => void;
  readonly stalled: (localRank: number, seconds: Seconds) => void;
}

/** Time that processes may outlive SIGKILL before it is an error. */
const killDeadline: Seconds = 30;

interface Place {
  readonly worker: RunningWorker;
  /** When it last said something; NaN before it has. */
  heard: Seconds;
  /** It has asked to begin a step: it is silent because we are. */
  asking: boolean;
  over: boolean;
  /** Nothing of its process group is left: the number may come to be another's. */
  gone: boolean;
  stalled: boolean;
}

export class WorkerSet {
  readonly #options: WorkerSetOptions;
  readonly #places: Place[] = [];
  #cancelWatch: () => void = () => undefined;
  #taken = false;

  constructor(options: WorkerSetOptions) {
    const { launch, host } = options;
    this.#options = options;
    const ranks = launch.members.find((member) => member.host === host)?.ranks ?? 0;
    for (let localRank = 0; localRank < ranks; localRank++)
      this.#places.push(this.#start(localRank));
  }

  #start(localRank: number): Place {
    const { run, launch, host, order, command, mark, feeds } = this.#options;
    const variables = rankEnvironment({ ...order, run, launch, host, localRank });
    const environment = { ...variables, [treeVariable]: mark };
    const feed = feeds.get(Number(variables["RANK"]));
    const events = {
      word: (value: unknown) => this.#hear(localRank, value),
      line: (stream: "stdout" | "stderr", line: string) =>
        this.#options.line(localRank, stream, line),
      ended: (outcome: WorkerOutcome) => {
        const place = this.#places[localRank];
        if (place !== undefined) {
          place.over = true;
          place.gone = processesOf({ mark, groups: groupOf(place.worker) }).length === 0;
        }
        // What comes of taking them down is no news.
        if (!this.#taken) this.#options.ended(localRank, outcome);
      },
    };
    const worker = startWorker(command, environment, feed, events);
    return { worker, heard: Number.NaN, asking: false, over: false, gone: false, stalled: false };
  }

  #hear(localRank: number, value: unknown): void {
    const place = this.#places[localRank];
    if (place === undefined || this.#taken) return;
    let word: WorkerWord;
    try {
      word = parseWorkerWord(value);
    } catch (error) {
      if (!(error instanceof TriremeError)) throw error;
      word = { kind: "fault", scope: "software", reason: error.message };
    }
    const first = Number.isNaN(place.heard);
    place.heard = this.#options.clock.now();
    place.stalled = false;
    place.asking = word.kind === "begin" || word.kind === "loader-state";
    if (first) this.#watch();
    this.#options.word(localRank, word);
  }

  /** One timer, at the first moment that someone can be late. */
  #watch(): void {
    const { clock, stallDeadline, stalled } = this.#options;
    this.#cancelWatch();
    if (stallDeadline === Infinity) return;
    const now = clock.now();
    let next = Infinity;
    for (const [localRank, place] of this.#places.entries()) {
      if (place.over || place.stalled || place.asking || Number.isNaN(place.heard)) continue;
      const silence = now - place.heard;
      if (silence < stallDeadline) next = Math.min(next, stallDeadline - silence);
      else {
        place.stalled = true;
        stalled(localRank, silence);
      }
    }
    this.#cancelWatch = clock.after(next, () => this.#watch());
  }

  answer(localRank: number, word: AgentWord): void {
    const place = this.#places[localRank];
    if (place === undefined || place.over) return;
    place.heard = this.#options.clock.now();
    place.asking = false;
    this.#watch();
    place.worker.answer(word);
  }

  /** Local ranks that live and have never said a word. */
  get mute(): readonly number[] {
    return this.#places.flatMap(({ heard, over }, i) => (Number.isNaN(heard) && !over ? [i] : []));
  }

  askToEnd(localRank: number): void {
    this.#places[localRank]?.worker.askToEnd();
  }

  /** Takes all down; resolves once nothing that they started lives. */
  async takeDown(grace: Seconds): Promise<void> {
    this.#taken = true;
    this.#cancelWatch();
    const groups = new Set(
      this.#places.flatMap(({ worker, gone }) => (gone ? [] : [...groupOf(worker)])),
    );
    const tree = { mark: this.#options.mark, groups };
    await Promise.all(this.#places.map(({ worker }) => worker.terminate()));
    if (processesOf(tree).length > 0)
      await killTree(tree, grace, killDeadline, this.#options.clock);
  }
}

/** Starts a worker; one that the system refuses at once ends a moment later, as one it refuses late. */
function startWorker(
  command: WorkerCommand,
  environment: Readonly<Record<string, string>>,
  feed: RankFeed | undefined,
  events: WorkerEvents,
): RunningWorker {
  try {
    return command.kind === "process"
      ? startWorkerProcess(command, environment, feed, events)
      : startWorkerThread(command, environment, feed, events);
  } catch (error) {
    // Arguments that no program can have, or more than the system takes.
    const reason = error instanceof Error ? error.message : String(error);
    setImmediate(() => events.ended({ kind: "start", reason }));
    return {
      pid: undefined,
      answer: () => undefined,
      askToEnd: () => undefined,
      terminate: () => Promise.resolve(),
    };
  }
}

function groupOf({ pid }: RunningWorker): ReadonlySet<number> {
  return new Set(pid === undefined ? [] : [pid]);
}

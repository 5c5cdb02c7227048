/** The main thread's end of one rank: requests go in, and each gets exactly one reply. */
import type { Worker } from "node:worker_threads";
import type { Failure, RankSeed, Turn, Value } from "./protocol.ts";
import { spawn } from "./spawn.ts";
import type { Pending } from "./thread-replies.ts";

/** What a thread is. */
interface ThreadOptions {
  readonly rank: number;
  /** What errors call it. */
  readonly title: string;
  /** Its module, without an ending. */
  readonly module: URL;
  readonly seed: unknown;
}

/** The thread of a rank. */
export function rankThread(seed: RankSeed, onDeath: (reason: string) => void): RankThread {
  const { rank } = seed;
  const module = new URL("./rank-worker", import.meta.url);
  return new RankThread({ rank, title: `rank ${rank}`, module, seed }, onDeath);
}

export class RankThread {
  /** Its rank in the world; −1 for a thread that is none. */
  readonly rank: number;
  /** What errors call it. */
  readonly title: string;
  readonly #worker: Worker;
  readonly #waiting: ((reply: Value | Failure) => void)[] = [];
  #dead: Failure | undefined;
  /** Whether it ended by itself, even where others had been ended for it, or is about to. */
  #died = false;

  /** @param onDeath Called once when the thread ends without having been asked to. */
  constructor({ rank, title, module, seed }: ThreadOptions, onDeath: (reason: string) => void) {
    this.rank = rank;
    this.title = title;
    this.#worker = spawn(module, seed);
    this.#worker.on("message", (reply: Value | Failure) => this.#waiting.shift()?.(reply));
    const die = (message: string): void => {
      if (this.#dead !== undefined) return;
      this.#died = true;
      this.#dead = { kind: "failure", code: "RANK_DIED", message: `${title} ${message}` };
      onDeath(this.#dead.message);
      for (const settle of this.#waiting.splice(0)) settle(this.#dead);
    };
    this.#worker.on("error", (error: Error) => {
      this.#died = true;
      die(`failed: ${error.message}`);
    });
    this.#worker.on("exit", (code) => die(`ended with exit code ${code}`));
  }

  /** The thread's report that it stands ready, or why it does not. */
  ready(): Pending {
    return { title: this.title, reply: this.#reply() };
  }

  /** The rank begins when the gate opens for this turn. */
  request(turn: Turn): Pending {
    const { title } = this;
    if (this.#dead !== undefined) return { title, reply: Promise.resolve(this.#dead) };
    this.#worker.postMessage(turn);
    return { title, reply: this.#reply() };
  }

  /** Ends the thread as a failure would: as if nobody had asked for it. */
  kill(): void {
    this.#died = true;
    void this.#worker.terminate();
  }

  /** Whether it has ended without having been asked to, or been killed: known for good once it is terminated. */
  get died(): boolean {
    return this.#died;
  }

  /** Ends the thread, whatever it is doing. */
  async terminate(): Promise<void> {
    this.#dead ??= { kind: "failure", code: "STOPPED", message: `${this.title} was stopped` };
    for (const settle of this.#waiting.splice(0)) settle(this.#dead);
    await this.#worker.terminate();
  }

  #reply(): Promise<Value | Failure> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}

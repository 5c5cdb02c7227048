/** The main thread's end of one rank: requests go in, and each gets exactly one reply. */
import type { Worker } from "node:worker_threads";
import type { Failure, RankSeed, Turn, Value } from "./protocol.ts";
import { spawn } from "./spawn.ts";

export class RankThread {
  readonly rank: number;
  readonly #worker: Worker;
  readonly #waiting: ((reply: Value | Failure) => void)[] = [];
  #dead: Failure | undefined;

  /** @param onDeath Called once when the thread ends without having been asked to. */
  constructor(seed: RankSeed, onDeath: (reason: string) => void) {
    this.rank = seed.rank;
    this.#worker = spawn(new URL("./rank-worker", import.meta.url), seed);
    this.#worker.on("message", (reply: Value | Failure) => this.#waiting.shift()?.(reply));
    const die = (message: string): void => {
      if (this.#dead !== undefined) return;
      this.#dead = { kind: "failure", code: "RANK_DIED", message: `rank ${seed.rank} ${message}` };
      onDeath(this.#dead.message);
      for (const settle of this.#waiting.splice(0)) settle(this.#dead);
    };
    this.#worker.on("error", (error: Error) => die(`failed: ${error.message}`));
    this.#worker.on("exit", (code) => die(`ended with exit code ${code}`));
  }

  /** The thread's report that it stands ready, or why it does not. */
  ready(): Promise<Value | Failure> {
    return this.#reply();
  }

  /** The rank begins when the gate opens for this turn. */
  request(turn: Turn): Promise<Value | Failure> {
    if (this.#dead !== undefined) return Promise.resolve(this.#dead);
    this.#worker.postMessage(turn);
    return this.#reply();
  }

  /** Ends the thread as a failure would: as if nobody had asked for it. */
  kill(): void {
    void this.#worker.terminate();
  }

  get isDead(): boolean {
    return this.#dead !== undefined && this.#dead.code === "RANK_DIED";
  }

  /** Ends the thread, whatever it is doing. */
  async terminate(): Promise<void> {
    this.#dead ??= { kind: "failure", code: "STOPPED", message: `rank ${this.rank} was stopped` };
    for (const settle of this.#waiting.splice(0)) settle(this.#dead);
    await this.#worker.terminate();
  }

  #reply(): Promise<Value | Failure> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }
}

/** Runs a function of a module on worker threads, one per rank, and gathers what each returns. */
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";
import { type SharedMemory, communicatorArena } from "@trireme/collectives";

const source = process.env["TEST_DIST"] === undefined;
const require = createRequire(import.meta.url);
const tsx = pathToFileURL(require.resolve("tsx/esm/api").replace(/\.cjs$/, ".mjs")).href;
const programs = new URL("./rank-programs.ts", import.meta.url).href;

/** What a rank's program returned, or the error it threw. */
export type Outcome<T> =
  | { readonly value: T }
  | { readonly code: string; readonly message: string };

export interface RankOptions {
  readonly memory?: SharedMemory;
  readonly deadline?: number;
  readonly argument?: unknown;
}

/** Threads that stay up between runs: starting one costs more than most tests. */
export class Ranks {
  readonly #workers: Worker[] = [];

  /** Runs the named export of `rank-programs.ts` on `ranks` threads. */
  async run<T>(program: string, ranks: number, options: RankOptions = {}): Promise<Outcome<T>[]> {
    const { memory = communicatorArena(ranks), deadline = 20, argument } = options;
    while (this.#workers.length < ranks) {
      this.#workers.push(
        new Worker(
          `import(${JSON.stringify(tsx)}).then((tsx) => { tsx.register(); return import(${JSON.stringify(programs)}); })`,
          { eval: true, ...(source && { execArgv: ["--conditions=@trireme/source"] }) },
        ),
      );
    }
    return Promise.all(
      Array.from({ length: ranks }, (_, rank) => {
        const worker = this.#workers[rank]!;
        return new Promise<Outcome<T>>((resolve, reject) => {
          worker.once("error", reject);
          worker.once("message", (outcome: Outcome<T>) => {
            worker.off("error", reject);
            resolve(outcome);
          });
          worker.postMessage({ program, memory, rank, ranks, deadline, argument });
        });
      }),
    );
  }

  async stop(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.terminate()));
  }
}

/** The values of a run in which no rank may fail. */
export function values<T>(outcomes: readonly Outcome<T>[]): T[] {
  return outcomes.map((outcome, rank) => {
    if ("value" in outcome) return outcome.value;
    throw new Error(`rank ${rank}: ${outcome.code} ${outcome.message}`);
  });
}

/**
 * Batches in order of step from workers that make them ahead of time. A batch depends on its step
 * alone, so workers need no state: steps go to whichever is free, a worker that dies is replaced and
 * its steps are asked of the next, and what comes out is the same whatever happened inside.
 */
import { TriremeError } from "@trireme/core";
import type { Batch } from "./loader.ts";
import { unlessAborted } from "./unless-aborted.ts";

/** Something that makes batches, one at a time: a thread, a process, or a loader right here. */
export interface BatchWorker {
  /** Makes the batch of a step; rejects when the worker is gone. */
  batch(step: number): Promise<Batch>;
  /** Ends it; what it is making is dropped. */
  close(): void;
}

/** A stream of batches. */
export interface BatchStreamOptions {
  /** Starts a worker; called again for each that dies. */
  readonly start: () => BatchWorker;
  /** Workers at a time. */
  readonly workers: number;
  /** First step. */
  readonly from: number;
  /** Steps before the stream ends; without it, it goes on. */
  readonly steps?: number;
  /** Batches made and not yet taken, at most: the stream's memory, and its back-pressure. */
  readonly prefetch: number;
  /** Failures in a row of one step after which the stream gives up with the last one. Default 3. */
  readonly attempts?: number;
  /** Ends the stream; the consumer's next read rejects with the signal's reason. */
  readonly signal?: AbortSignal;
}

/** The batches of `from`, `from` + 1, … in that order. Workers end with the stream. */
export async function* streamBatches(
  options: BatchStreamOptions,
): AsyncGenerator<Batch, void, undefined> {
  const { start, workers: count, from, steps = Infinity, prefetch, attempts = 3, signal } = options;
  for (const [name, value] of Object.entries({ workers: count, prefetch, attempts })) {
    if (!Number.isInteger(value) || value < 1)
      throw new TriremeError("STREAM", `${name} ${value} is not a positive integer`);
  }
  if (!Number.isSafeInteger(from) || from < 0)
    throw new TriremeError("STREAM", `first step ${from} is not a non-negative integer`);
  if (!(steps === Infinity || (Number.isSafeInteger(steps) && steps >= 0)))
    throw new TriremeError("STREAM", `steps ${steps} is not a count`);

  const pool = new WorkerPool(start, count, attempts);
  const made = new Map<number, Promise<Batch>>();
  try {
    let asked = from;
    for (let step = from; step < from + steps; step++) {
      for (; asked < Math.min(step + prefetch, from + steps); asked++) {
        const batch = pool.batch(asked);
        // A failure is seen when its turn comes; until then it must not count as unhandled.
        batch.catch(() => undefined);
        made.set(asked, batch);
      }
      const batch = await unlessAborted(made.get(step)!, signal);
      made.delete(step);
      yield batch;
    }
  } finally {
    pool.close();
  }
}

/** Runs steps on a number of workers, each one step at a time, and replaces those that fail. */
class WorkerPool {
  readonly #start: () => BatchWorker;
  readonly #attempts: number;
  readonly #free: (BatchWorker | undefined)[];
  readonly #waiting: ((worker: BatchWorker | undefined) => void)[] = [];
  readonly #busy = new Set<BatchWorker>();
  #closed = false;

  constructor(start: () => BatchWorker, count: number, attempts: number) {
    this.#start = start;
    this.#attempts = attempts;
    // A place without a worker yet: it is started when it is first needed.
    this.#free = Array.from({ length: count }, () => undefined);
  }

  async batch(step: number): Promise<Batch> {
    for (let attempt = 1; ; attempt++) {
      let worker = await this.#take();
      if (this.#closed) {
        worker?.close();
        throw new TriremeError("STREAM", `the stream ended before step ${step} was made`);
      }
      try {
        // One that does not even start has failed the step like one that dies.
        worker ??= this.#start();
        this.#busy.add(worker);
        const batch = await worker.batch(step);
        this.#give(worker);
        return batch;
      } catch (cause) {
        worker?.close();
        if (worker !== undefined) this.#busy.delete(worker);
        this.#give(undefined);
        if (attempt >= this.#attempts || this.#closed) {
          const reason = cause instanceof Error ? cause.message : String(cause);
          throw new TriremeError("STREAM", `step ${step} failed ${attempt} times: ${reason}`, {
            cause,
          });
        }
      }
    }
  }

  close(): void {
    this.#closed = true;
    for (const worker of [...this.#free, ...this.#busy]) worker?.close();
    this.#free.length = 0;
    for (const wake of this.#waiting.splice(0)) wake(undefined);
  }

  #take(): Promise<BatchWorker | undefined> {
    if (this.#free.length > 0) return Promise.resolve(this.#free.pop());
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #give(worker: BatchWorker | undefined): void {
    if (worker !== undefined) this.#busy.delete(worker);
    const next = this.#waiting.shift();
    if (this.#closed) worker?.close();
    else if (next === undefined) this.#free.push(worker);
    else next(worker);
  }
}

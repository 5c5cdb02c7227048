/**
 * Cores shared by more jobs than there are: processor sharing. With n jobs on c cores each job runs
 * at the rate min(1, c / n), as under a fair time-sharing scheduler with small slices.
 *
 * Virtual time is what a job has been given since the pool began, and all running jobs are given the
 * same; a job of work w that starts at virtual time v ends at v + w, whoever comes and goes. So the
 * jobs sit in a heap ordered by their virtual end, and each start or end costs O(log n) (Parekh and
 * Gallager, A generalized processor sharing approach to flow control, 1993, with equal weights).
 */
import { Heap, type Seconds, TriremeError } from "@trireme/core";

interface Job {
  readonly id: number;
  readonly end: Seconds;
  readonly order: number;
}

export class SharedCores {
  readonly #cores: number;
  readonly #jobs: Heap<Job> = new Heap(
    (a, b) => a.end < b.end || (a.end === b.end && a.order < b.order),
  );
  #virtual: Seconds = 0;
  #now: Seconds = 0;
  #started = 0;

  /** @param cores Jobs that run at full speed at once, at least 1. */
  constructor(cores: number) {
    if (!(cores >= 1)) throw new TriremeError("CORES", `${cores} shared cores: give at least 1`);
    this.#cores = cores;
  }

  /** Jobs that run. */
  get running(): number {
    return this.#jobs.size;
  }

  /** Starts a job that would take `work` seconds alone. */
  start(now: Seconds, id: number, work: Seconds): void {
    this.#advance(now);
    // Restarts virtual time where nothing depends on it, so that it does not lose precision.
    if (this.#jobs.size === 0) this.#virtual = 0;
    this.#jobs.push({ id, end: this.#virtual + work, order: this.#started++ });
  }

  /** When the next job ends if none starts before; Infinity when none runs. */
  next(): Seconds {
    const first = this.#jobs.peek();
    if (first === undefined) return Infinity;
    return this.#now + Math.max(0, first.end - this.#virtual) / this.#rate();
  }

  /** Takes the job that ends next, at `now`, the time that `next` told. */
  finish(now: Seconds): number {
    const job = this.#jobs.peek();
    if (job === undefined) throw new TriremeError("CORES", `no job runs at ${now} s`);
    this.#advance(now);
    this.#jobs.pop();
    // The time told was rounded; the job is over exactly now.
    this.#virtual = Math.max(this.#virtual, job.end);
    return job.id;
  }

  #advance(now: Seconds): void {
    if (this.#jobs.size > 0) this.#virtual += (now - this.#now) * this.#rate();
    this.#now = now;
  }

  #rate(): number {
    return Math.min(1, this.#cores / this.#jobs.size);
  }
}

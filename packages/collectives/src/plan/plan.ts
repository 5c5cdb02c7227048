/**
 * A collective expanded to steps. In a step every rank posts all its sends and receives and then
 * waits for them; a transfer reads what its source held before the step. Chunks are named, so that
 * one row says who sends what to whom and whether the target keeps it or adds it to its own. Rows
 * are columns of typed arrays in the order of steps: a ring over 1,024 ranks has 2.1 million.
 */
import { type Bytes, TriremeError } from "@trireme/core";

/** Operations a plan can carry out. */
export type PlanOperation =
  | "all-reduce"
  | "reduce-scatter"
  | "all-gather"
  | "broadcast"
  | "reduce"
  | "scatter"
  | "gather"
  | "all-to-all"
  | "barrier";

/**
 * A collective as transfers of chunks. The buffer of the operation is cut into `chunks` equal
 * chunks. Chunk c belongs to rank `floor(c / (chunks / ranks))` where an operation has an owner
 * (reduce-scatter, all-gather, scatter, gather); in an all-to-all, whose chunks are named over all
 * buffers, chunk `(i * ranks + j) * k + b` is block b of what rank i has for rank j.
 */
export interface CollectivePlan {
  readonly operation: PlanOperation;
  readonly algorithm: string;
  readonly ranks: number;
  /** Switches that add and copy, as sources and targets numbered from `ranks` on. */
  readonly switches: number;
  readonly chunks: number;
  /** Sizes of the chunks, in any unit, where they are not equal (v-variants). */
  readonly sizes?: Float64Array;
  /** Root of a rooted operation, else -1. */
  readonly root: number;
  readonly steps: number;
  /** Row where each step starts; one more entry than steps. */
  readonly starts: Int32Array;
  readonly source: Int32Array;
  readonly target: Int32Array;
  /** First chunk and number of chunks of a row. */
  readonly chunk: Int32Array;
  readonly count: Int32Array;
  /** 1 where the target adds, 0 where it keeps. */
  readonly reduce: Uint8Array;
}

/** What a plan is, without its rows. */
export type PlanHead = Pick<
  CollectivePlan,
  "operation" | "algorithm" | "ranks" | "chunks" | "sizes"
> & { readonly root?: number; readonly switches?: number };

/** Chunks are numbered in 32 bits with a sign; so many rows are 4.5 GB. */
const most = { chunks: 2 ** 31 - 1, rows: 2 ** 28 };

/** Collects rows step by step. Throws `PLAN` where there are more than 2^31 - 1 chunks or 2^28 rows. */
export class PlanBuilder {
  readonly #head: PlanHead;
  readonly #starts: number[] = [0];
  #source: Int32Array;
  #target: Int32Array;
  #chunk: Int32Array;
  #count: Int32Array;
  #reduce: Uint8Array;
  #rows = 0;

  /** @param rows Rows expected; the columns grow when there are more. */
  constructor(head: PlanHead, rows = 64) {
    this.#head = head;
    if (!(head.chunks <= most.chunks)) this.#refuse(head.chunks, "chunks");
    if (!(rows <= most.rows)) this.#refuse(rows, "rows");
    this.#source = new Int32Array(rows);
    this.#target = new Int32Array(rows);
    this.#chunk = new Int32Array(rows);
    this.#count = new Int32Array(rows);
    this.#reduce = new Uint8Array(rows);
  }

  /** Adds a transfer to the current step. */
  add(source: number, target: number, chunk: number, count: number, reduce: boolean): void {
    const row = this.#rows++;
    if (row === most.rows) this.#refuse(row + 1, "rows");
    if (row === this.#source.length) this.#resize(Math.min(most.rows, Math.max(64, 2 * row)));
    this.#source[row] = source;
    this.#target[row] = target;
    this.#chunk[row] = chunk;
    this.#count[row] = count;
    this.#reduce[row] = reduce ? 1 : 0;
  }

  /** Adds a transfer of `count` chunks from `chunk` on, going on at 0 after the last. */
  addWrapped(source: number, target: number, chunk: number, count: number, reduce: boolean): void {
    const { chunks } = this.#head;
    const first = ((chunk % chunks) + chunks) % chunks;
    const straight = Math.min(count, chunks - first);
    if (straight > 0) this.add(source, target, first, straight, reduce);
    if (count > straight) this.add(source, target, 0, count - straight, reduce);
  }

  /** Ends the current step. */
  step(): void {
    this.#starts.push(this.#rows);
  }

  finish(): CollectivePlan {
    if (this.#rows !== this.#source.length) this.#resize(this.#rows);
    return {
      ...this.#head,
      root: this.#head.root ?? -1,
      switches: this.#head.switches ?? 0,
      steps: this.#starts.length - 1,
      starts: Int32Array.from(this.#starts),
      source: this.#source,
      target: this.#target,
      chunk: this.#chunk,
      count: this.#count,
      reduce: this.#reduce,
    };
  }

  #refuse(found: number, what: "chunks" | "rows"): never {
    const { operation, algorithm, ranks } = this.#head;
    throw new TriremeError(
      "PLAN",
      `${operation} by ${algorithm} over ${ranks} ranks has ${found} ${what}, at most ${most[what]}; use fewer ranks`,
    );
  }

  #resize(rows: number): void {
    const grown = <T extends Int32Array | Uint8Array>(column: T, next: T): T => {
      next.set(column.subarray(0, Math.min(column.length, rows)));
      return next;
    };
    this.#source = grown(this.#source, new Int32Array(rows));
    this.#target = grown(this.#target, new Int32Array(rows));
    this.#chunk = grown(this.#chunk, new Int32Array(rows));
    this.#count = grown(this.#count, new Int32Array(rows));
    this.#reduce = grown(this.#reduce, new Uint8Array(rows));
  }
}

/** Bytes of one chunk when each rank's buffer (of an all-to-all, of what it sends) has `bytes`. */
export function chunkBytes(plan: CollectivePlan, bytes: Bytes): Bytes {
  return plan.operation === "all-to-all" ? (bytes * plan.ranks) / plan.chunks : bytes / plan.chunks;
}

/** Throws `ROOT` unless `root` is a rank. */
export function checkRoot(root: number, ranks: number): void {
  checkRanks(ranks);
  if (!Number.isInteger(root) || root < 0 || root >= ranks) {
    throw new TriremeError("ROOT", `root ${root} must be an integer in 0..${ranks - 1}`);
  }
}

/** Throws `RANKS` unless `ranks` is a positive integer. */
export function checkRanks(ranks: number): void {
  if (!Number.isInteger(ranks) || ranks < 1) {
    throw new TriremeError("RANKS", `ranks ${ranks} must be an integer of at least 1`);
  }
}

/** Writes the columns of a schedule rank by rank: what every generator and pass ends in. */
import { TriremeError } from "@trireme/core";
import { type Schedule, loopPlacement } from "./schedule.ts";

/** The parts of a schedule that are not columns. */
export type ScheduleShape = Omit<
  Schedule,
  "offsets" | "kind" | "stage" | "microbatch" | "overlap" | "slot"
>;

/** Actions beyond this are refused: the columns would pass 2 GiB. */
const maxActions = 2 ** 27;

export class ScheduleBuilder {
  readonly #shape: ScheduleShape;
  readonly #offsets: Int32Array;
  #kind: Uint8Array;
  #stage: Int32Array;
  #microbatch: Int32Array;
  #overlap: Uint8Array;
  #slot: Int32Array | undefined;
  #length = 0;
  #rows = 0;

  /** @param capacity Actions that the columns hold before they grow. */
  constructor(shape: ScheduleShape, capacity = 1024, slots = false) {
    this.#shape = shape;
    this.#offsets = new Int32Array(shape.ranks + 1);
    if (capacity > maxActions) throw tooLarge(shape.name, capacity);
    this.#kind = new Uint8Array(capacity);
    this.#stage = new Int32Array(capacity);
    this.#microbatch = new Int32Array(capacity);
    this.#overlap = new Uint8Array(capacity);
    if (slots) this.#slot = new Int32Array(capacity);
  }

  /** Appends an action to the current rank's row. */
  add(kind: number, stage: number, microbatch: number, overlap = 0, slot = 0): void {
    const i = this.#length++;
    if (i === this.#kind.length) this.#grow();
    this.#kind[i] = kind;
    this.#stage[i] = stage;
    this.#microbatch[i] = microbatch;
    this.#overlap[i] = overlap;
    if (this.#slot !== undefined) this.#slot[i] = slot;
  }

  /** Ends the current rank's row. */
  endRow(): void {
    this.#offsets[++this.#rows] = this.#length;
  }

  /** The schedule; the builder must not be used afterwards. */
  finish(): Schedule {
    const n = this.#length;
    const exact = n === this.#kind.length;
    return {
      ...this.#shape,
      offsets: this.#offsets,
      kind: exact ? this.#kind : this.#kind.slice(0, n),
      stage: exact ? this.#stage : this.#stage.slice(0, n),
      microbatch: exact ? this.#microbatch : this.#microbatch.slice(0, n),
      overlap: exact ? this.#overlap : this.#overlap.slice(0, n),
      ...(this.#slot === undefined ? {} : { slot: this.#slot.slice(0, n) }),
    };
  }

  #grow(): void {
    const n = Math.max(16, 2 * this.#kind.length);
    if (n > maxActions) throw tooLarge(this.#shape.name, n);
    this.#kind = enlarged(this.#kind, new Uint8Array(n));
    this.#stage = enlarged(this.#stage, new Int32Array(n));
    this.#microbatch = enlarged(this.#microbatch, new Int32Array(n));
    this.#overlap = enlarged(this.#overlap, new Uint8Array(n));
    if (this.#slot !== undefined) this.#slot = enlarged(this.#slot, new Int32Array(n));
  }
}

function enlarged<T extends Uint8Array | Int32Array>(from: T, to: T): T {
  to.set(from);
  return to;
}

function tooLarge(name: string, actions: number): TriremeError {
  return new TriremeError(
    "SCHEDULE_SIZE",
    `${name}: ${actions} actions are more than 2^27; use fewer microbatches, chunks or ranks`,
  );
}

/**
 * Checks at the door of a generator that named counts are integers of 1 or more, and that an action
 * of each microbatch on each stage is not too many before anything of that size is made.
 */
export function checkCounts(name: string, counts: Readonly<Record<string, number>>): void {
  let actions = 1;
  for (const [what, n] of Object.entries(counts)) {
    if (!Number.isInteger(n) || n < 1 || n > 2 ** 27) {
      throw new TriremeError("SCHEDULE", `${name}: ${what} = ${n} is not an integer in 1..2^27`);
    }
    actions *= n;
  }
  if (actions > maxActions) throw tooLarge(name, actions);
}

/**
 * The builder of a schedule whose stages are laid out in a loop, stage s on rank s mod P, with room
 * for `passes` actions of every microbatch in every stage.
 */
export function loopBuilder(
  name: string,
  o: { readonly ranks: number; readonly chunks?: number; readonly microbatches: number },
  passes = 2,
): ScheduleBuilder {
  const { ranks, chunks = 1, microbatches } = o;
  const stages = ranks * chunks;
  const stageRank = loopPlacement(ranks, stages);
  return new ScheduleBuilder(
    { name, ranks, chunks, microbatches, stages, stageRank, directions: 1, forwardOnly: false },
    passes * stages * microbatches,
  );
}

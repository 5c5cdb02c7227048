/**
 * Puts passes over a split vocabulary into a schedule (arXiv 2411.05288 §5.2): each backward is delayed by a microbatch
 * for every barrier, and in the room that this leaves each rank runs S and T between the actions that it has anyway.
 * Where is found by running the schedule once with given times (§6.1: from a profile): S as soon as it may, since all
 * ranks wait for it; T as soon where the last stage waits for it, else when nothing else can run, one waiting at most.
 */
import { TriremeError } from "@trireme/core";
import { kindCode } from "../action.ts";
import type { Schedule } from "../schedule.ts";
import { delayBackward } from "./delay-backward.ts";
import { type VocabularySchedule, entryCode } from "./vocabulary-schedule.ts";
import { VocabularyState } from "./vocabulary-state.ts";

/** How the ranks compute the loss together. */
export interface VocabularyOptions {
  /** 2: Algorithm 1; 1: Algorithm 2, whose S holds the gradient of the last stage's output. */
  readonly barriers: 1 | 2;
  /**
   * What the passes are placed by; those of a building block when left out: a forward 1, a backward 2, all else 1/2.
   */
  readonly times?: Partial<PassTimes>;
}

/** Times of one microbatch on one stage, in any unit. */
export interface PassTimes {
  readonly forward: number;
  readonly inputGradient: number;
  readonly weightGradient: number;
  readonly s: number;
  readonly t: number;
  /** Each exchange. */
  readonly exchange: number;
}

const buildingBlock: PassTimes = {
  forward: 1,
  inputGradient: 1,
  weightGradient: 1,
  s: 0.5,
  t: 0.5,
  exchange: 0.5,
};

/**
 * The schedule with S and T of every microbatch on every rank.
 * @throws TriremeError `VOCABULARY` for a schedule of two directions, forward only, with overlapped pairs or
 * with anything but compute (add the passes first, then lower), and for times that are none.
 */
export function addVocabulary(s: Schedule, o: VocabularyOptions): VocabularySchedule {
  const times = { ...buildingBlock, ...o.times };
  check(s, o, times);
  const schedule = delayBackward(s, o.barriers);
  const each = times.exchange;
  const none = new Float64Array(s.stages);
  const state = new VocabularyState(
    schedule,
    o.barriers,
    { up: none, down: none },
    { output: each, statistics: each, gradient: each },
  );
  const rows = Array.from(
    { length: s.ranks },
    (_, r) => new Row(schedule, o.barriers, times, state, r),
  );
  // When each rank can run next.
  const starts = Float64Array.from(rows, (row) => row.start());
  for (let left = schedule.kind.length + 2 * s.ranks * s.microbatches; left > 0; left--) {
    // Nothing that runs later can let a rank start earlier than the earliest that can.
    let next = 0;
    for (let r = 1; r < starts.length; r++) if (starts[r]! < starts[next]!) next = r;
    const touched = rows[next]!.run();
    if (touched === "all") for (const [r, row] of rows.entries()) starts[r] = row.start();
    else for (const r of touched) starts[r] = rows[r]!.start();
  }
  const offsets = new Int32Array(s.ranks + 1);
  for (const [r, row] of rows.entries()) offsets[r + 1] = offsets[r]! + row.kind.length;
  return {
    schedule,
    barriers: o.barriers,
    offsets,
    kind: Uint8Array.from(rows.flatMap((row) => row.kind)),
    of: Int32Array.from(rows.flatMap((row) => row.of)),
  };
}

function check(s: Schedule, { barriers }: VocabularyOptions, times: PassTimes): void {
  const fail = (rule: string): never => {
    throw new TriremeError("VOCABULARY", `${s.name}: ${rule}`);
  };
  if (![1, 2].includes(barriers)) fail(`barriers ${String(barriers)} are not 1 or 2`);
  if (s.directions === 2) fail("two directions have two last stages; use 1f1b or v-half");
  if (s.forwardOnly) fail("a loss without backward needs no barrier; use a schedule that trains");
  if (s.kind.some((kind) => kind > kindCode.B)) fail("it is lowered; add the vocabulary first");
  for (const [name, time] of Object.entries(times)) {
    if (!(time >= 0 && time < Infinity)) fail(`time ${name} ${time} is not finite and 0 or more`);
  }
  if (s.overlap.includes(1)) fail("overlapped pairs leave no room for passes; use 1f1b or v-half");
}

/** One rank: what it has run, and what it may run next. */
class Row {
  readonly kind: number[] = [];
  readonly of: number[] = [];
  readonly #s: Schedule;
  readonly #barriers: 1 | 2;
  readonly #times: PassTimes;
  /** By kind of action: F, I, W, B. */
  readonly #durations: readonly number[];
  readonly #state: VocabularyState;
  readonly #rank: number;
  readonly #end: number;
  #next: number;
  #s1 = 0;
  #t1 = 0;
  #clock = 0;

  constructor(
    s: Schedule,
    barriers: 1 | 2,
    times: PassTimes,
    state: VocabularyState,
    rank: number,
  ) {
    const { forward, inputGradient, weightGradient } = times;
    this.#s = s;
    this.#barriers = barriers;
    this.#times = times;
    this.#durations = [forward, inputGradient, weightGradient, inputGradient + weightGradient];
    this.#state = state;
    this.#rank = rank;
    this.#next = s.offsets[rank]!;
    this.#end = s.offsets[rank + 1]!;
  }

  #action(): number {
    return this.#next < this.#end ? known(this.#state.action(this.#next)) : Infinity;
  }

  #pass(kind: "S" | "T"): number {
    const m = kind === "S" ? this.#s1 : this.#t1;
    return m < this.#s.microbatches ? known(this.#state.pass(kind, m)) : Infinity;
  }

  /** When it can run anything; Infinity: not known. */
  start(): number {
    return Math.max(this.#clock, Math.min(this.#action(), this.#pass("S"), this.#pass("T")));
  }

  /** Runs what comes first of what it can run then; the ranks that this may let start, itself among them. */
  run(): "all" | readonly number[] {
    const now = this.start();
    const late = this.#s1 - this.#t1 > 1;
    if (this.#pass("T") <= now && (this.#barriers === 2 || late)) return this.#runPass("T", now);
    if (this.#pass("S") <= now) return this.#runPass("S", now);
    return this.#action() <= now ? this.#runAction(now) : this.#runPass("T", now);
  }

  #runAction(now: number): "all" | readonly number[] {
    const i = this.#next++;
    this.#clock = now + this.#durations[this.#s.kind[i]!]!;
    this.kind.push(entryCode.action);
    this.of.push(i);
    if (this.#state.endAction(i, this.#clock)) return "all";
    const { stageRank } = this.#s;
    const stage = this.#s.stage[i]!;
    const neighbours = [stageRank[stage - 1], stageRank[stage + 1]];
    return [this.#rank, ...neighbours.filter((r) => r !== undefined)];
  }

  #runPass(kind: "S" | "T", now: number): "all" | readonly number[] {
    const m = kind === "S" ? this.#s1++ : this.#t1++;
    this.#clock = now + (kind === "S" ? this.#times.s : this.#times.t);
    this.kind.push(entryCode[kind]);
    this.of.push(m);
    return this.#state.endPass(kind, m, this.#clock) ? "all" : [this.#rank];
  }
}

/** NaN, not known, as never. */
function known(time: number): number {
  return time === time ? time : Infinity;
}

/**
 * What the controller has heard of each host; a crash may lose it. Hosts that behave alike share one
 * entry (the cohort), so that a report in the name of thousands costs as much as one. Counts are
 * kept up, so that no report costs more as hosts grow.
 */
import { Heap, type Seconds } from "@trireme/core";

/** What is known of a host. */
interface Entry {
  heard: Seconds;
  /** Greatest generation it reported, and its steps in that. */
  generation: number;
  done: number;
  saved: number;
  /** Whether the heap of silence holds it. */
  queued: boolean;
}

/** A member in the heap of silence, by when it had been heard as it entered. */
interface Silence {
  readonly host: number;
  readonly entry: Entry;
  readonly at: Seconds;
}

export interface Heard {
  readonly generation: number;
  readonly done: number;
  readonly saved?: number;
}

export class Roster {
  readonly #own = new Map<number, Entry>();
  #cohort: Entry;
  readonly #members: Set<number>;
  #generation: number;
  #committed: number;
  /** Members with an entry of their own: all, those in the generation, those past `committed`. */
  #owners = 0;
  #entered = 0;
  #ahead = 0;
  readonly #silence = new Heap<Silence>((a, b) => a.at < b.at);
  /** When anybody was heard last. */
  #last: Seconds;
  /** Whether hosts of the cohort are known to go on reporting. */
  #lasting = false;
  /** Most steps that anybody has done in the generation. */
  #furthest = 0;

  constructor(members: readonly number[], generation: number, committed: number, now: Seconds) {
    this.#members = new Set(members);
    this.#generation = generation;
    this.#committed = committed;
    this.#cohort = { heard: now, generation: 0, done: 0, saved: 0, queued: false };
    this.#last = now;
  }

  get last(): Seconds {
    return this.#lasting ? Infinity : this.#last;
  }

  /** Somebody was heard, if only one that has been evicted. */
  touch(now: Seconds): void {
    this.#last = Math.max(this.#last, now);
  }

  isMember(host: number): boolean {
    return this.#members.has(host);
  }

  heard(host: number): Seconds {
    return this.#entry(host).heard;
  }

  /** Takes a report; true if it shows a step that nobody had done in the generation. */
  hear(host: number, report: Heard, now: Seconds): boolean {
    let entry = this.#own.get(host);
    const member = this.#members.has(host);
    if (entry === undefined) {
      entry = this.#apart(now);
      this.#own.set(host, entry);
    } else if (member) this.#count(entry, -1);
    merge(entry, report, now);
    if (member) {
      this.#count(entry, 1);
      this.#queue(host, entry);
    }
    return this.#further(report);
  }

  /** Takes a report in the name of all hosts but some; `lasting` until the next such report. */
  hearCohort(report: Heard, except: readonly number[], now: Seconds, lasting: boolean): boolean {
    const apart = new Set(except);
    for (const host of apart) {
      if (this.#own.has(host)) continue;
      const entry = this.#apart(now);
      this.#own.set(host, entry);
      if (this.#members.has(host)) {
        this.#count(entry, 1);
        this.#queue(host, entry);
      }
    }
    if (this.#own.size > apart.size) this.#join(report, apart, now, lasting);
    // A new object: what an earlier report said of hosts now apart must not change with it.
    this.#cohort = this.#apart(now);
    merge(this.#cohort, report, lasting ? Infinity : now);
    this.#lasting = lasting;
    return this.#further(report);
  }

  /**
   * Hosts that speak with the cohort again, and have nothing of their own to say, are of it. A
   * lasting report speaks of what all of them have said at least.
   */
  #join(report: Heard, apart: ReadonlySet<number>, now: Seconds, lasting: boolean): void {
    const whole = covers(report, this.#cohort);
    for (const [host, entry] of this.#own) {
      if (apart.has(host)) continue;
      const member = this.#members.has(host);
      if (member) this.#count(entry, -1);
      if (lasting || (whole && covers(report, entry))) {
        this.#own.delete(host);
        continue;
      }
      merge(entry, report, now);
      if (member) {
        this.#count(entry, 1);
        this.#queue(host, entry);
      }
    }
  }

  /** Silence is counted from now for everybody. */
  forgive(now: Seconds): void {
    this.#cohort.heard = Math.max(this.#cohort.heard, now);
    for (const entry of this.#own.values()) entry.heard = Math.max(entry.heard, now);
  }

  /** The members of a generation, `removed` and `added` since the last call. */
  change(
    generation: number,
    committed: number,
    removed: Iterable<number>,
    added: Iterable<number>,
  ): void {
    for (const host of removed) this.#members.delete(host);
    for (const host of added) {
      this.#members.add(host);
      const entry = this.#own.get(host);
      if (entry !== undefined) this.#queue(host, entry);
    }
    if (generation !== this.#generation) this.#furthest = 0;
    this.#generation = generation;
    this.#committed = committed;
    this.#owners = 0;
    this.#entered = 0;
    this.#ahead = 0;
    for (const [host, entry] of this.#own) if (this.#members.has(host)) this.#count(entry, 1);
  }

  /** Whether every member has reported the generation. */
  get complete(): boolean {
    const shared = this.#members.size - this.#owners;
    return (
      this.#entered === this.#owners &&
      (shared === 0 || this.#cohort.generation === this.#generation)
    );
  }

  /** Members that have not reported the generation. */
  absent(): readonly number[] {
    return [...this.#members].filter((host) => this.#entry(host).generation !== this.#generation);
  }

  /** The last step that all members have saved in the generation; undefined if none is new. */
  get saved(): number | undefined {
    const shared = this.#members.size - this.#owners;
    if (this.#ahead !== this.#owners || (shared > 0 && !this.#isAhead(this.#cohort))) {
      return undefined;
    }
    let least = shared > 0 ? this.#cohort.saved : Infinity;
    for (const [host, entry] of this.#own) {
      if (entry.saved < least && this.#members.has(host)) least = entry.saved;
    }
    return least === Infinity ? undefined : least;
  }

  /** When the member was heard that has been silent longest; Infinity without members. */
  get oldest(): Seconds {
    const shared = this.#members.size > this.#owners ? this.#cohort.heard : Infinity;
    for (;;) {
      const top = this.#silence.peek();
      if (top === undefined) return shared;
      const { host, entry } = top;
      const current = this.#own.get(host) === entry && this.#members.has(host);
      if (current && entry.heard === top.at) return Math.min(shared, top.at);
      this.#silence.pop();
      entry.queued = false;
      if (current) this.#queue(host, entry);
    }
  }

  /** Members that have been silent for the deadline. */
  silent(now: Seconds, deadline: Seconds): readonly number[] {
    if (this.oldest + deadline > now) return [];
    return [...this.#members].filter((host) => this.#entry(host).heard + deadline <= now);
  }

  #entry(host: number): Entry {
    return this.#own.get(host) ?? this.#cohort;
  }

  /** What is known of a host of the cohort; what lasts has held up to now. */
  #apart(now: Seconds): Entry {
    return { ...this.#cohort, heard: Math.min(this.#cohort.heard, now), queued: false };
  }

  #isAhead(entry: Entry): boolean {
    return entry.generation === this.#generation && entry.saved > this.#committed;
  }

  #count(entry: Entry, sign: 1 | -1): void {
    this.#owners += sign;
    if (entry.generation === this.#generation) this.#entered += sign;
    if (this.#isAhead(entry)) this.#ahead += sign;
  }

  #queue(host: number, entry: Entry): void {
    if (entry.queued) return;
    entry.queued = true;
    this.#silence.push({ host, entry, at: entry.heard });
  }

  #further({ generation, done }: Heard): boolean {
    if (generation !== this.#generation || done <= this.#furthest) return false;
    this.#furthest = done;
    return true;
  }
}

/** Whether a report leaves nothing over of what an entry holds. */
function covers({ generation, done, saved = done }: Heard, entry: Entry): boolean {
  if (generation !== entry.generation) return generation > entry.generation;
  return done >= entry.done && saved >= entry.saved;
}

function merge(entry: Entry, { generation, done, saved = done }: Heard, now: Seconds): void {
  entry.heard = Math.max(entry.heard, now);
  if (generation > entry.generation) {
    entry.generation = generation;
    entry.done = done;
    entry.saved = saved;
  } else if (generation === entry.generation) {
    entry.done = Math.max(entry.done, done);
    entry.saved = Math.max(entry.saved, saved);
  }
}

/** Where a rank's events and data go while they are recorded: memory, or files of a directory. */
import { appendFileSync, mkdirSync, openSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { Bytes } from "@trireme/core";
import type { TraceEvent, TraceShard } from "./trace.ts";
import { eventLine } from "./event-line.ts";

export interface TraceSink {
  event(event: TraceEvent): void;
  /** Keeps a copy of some bytes; returns where they begin in the shard's data, a multiple of 8. */
  keep(parts: readonly Uint8Array[]): Bytes;
  /** Everything so far. */
  shard(): TraceShard;
}

/** Data begins on multiples of this, so that numbers can be read where they lie. */
const unit = 8;

/** Keeps events alone: no data. */
export class EventList implements TraceSink {
  readonly #rank: number;
  #events: TraceEvent[] = [];

  constructor(rank: number) {
    this.#rank = rank;
  }

  event(event: TraceEvent): void {
    this.#events.push(event);
  }

  /** Forgets all but the groups. */
  forgetTurns(): void {
    this.#events = this.#events.filter(({ kind }) => kind === "group");
  }

  keep(): Bytes {
    return -1;
  }

  shard(): TraceShard {
    return { rank: this.#rank, events: this.#events, data: new SharedArrayBuffer(0) };
  }
}

/** Keeps all in memory. */
export class MemorySink implements TraceSink {
  readonly #rank: number;
  readonly #events: TraceEvent[] = [];
  #bytes = new Uint8Array(1 << 16);
  #end = 0;

  constructor(rank: number) {
    this.#rank = rank;
  }

  event(event: TraceEvent): void {
    this.#events.push(event);
  }

  keep(parts: readonly Uint8Array[]): Bytes {
    const start = Math.ceil(this.#end / unit) * unit;
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    if (start + length > this.#bytes.length) {
      const wider = new Uint8Array(Math.max(2 * this.#bytes.length, start + length));
      wider.set(this.#bytes);
      this.#bytes = wider;
    }
    this.#end = start;
    for (const part of parts) {
      this.#bytes.set(part, this.#end);
      this.#end += part.length;
    }
    return start;
  }

  shard(): TraceShard {
    const data = new SharedArrayBuffer(this.#end);
    new Uint8Array(data).set(this.#bytes.subarray(0, this.#end));
    return { rank: this.#rank, events: this.#events, data };
  }
}

/** The files of one rank's shard. */
export function shardFiles(directory: string, rank: number): { events: string; data: string } {
  const name = join(directory, `rank-${rank}`);
  return { events: `${name}.jsonl`, data: `${name}.bin` };
}

/** Writes `rank-N.jsonl`, an event a line, at the end of each turn, and `rank-N.bin` as data comes. */
export class FileSink implements TraceSink {
  readonly #rank: number;
  readonly #files: { readonly events: string; readonly data: string };
  readonly #data: number;
  readonly #events: TraceEvent[] = [];
  #lines = "";
  #end = 0;

  constructor(directory: string, rank: number) {
    mkdirSync(directory, { recursive: true });
    this.#rank = rank;
    this.#files = shardFiles(directory, rank);
    writeFileSync(this.#files.events, "");
    this.#data = openSync(this.#files.data, "w");
  }

  event(event: TraceEvent): void {
    this.#events.push(event);
    this.#lines += `${eventLine(event)}\n`;
    if (event.kind === "reply") this.#flush();
  }

  keep(parts: readonly Uint8Array[]): Bytes {
    const start = Math.ceil(this.#end / unit) * unit;
    this.#end = start;
    for (const part of parts) {
      // A copy: file calls take no shared memory.
      const bytes = part.slice();
      for (let at = 0; at < bytes.length;) {
        at += writeSync(this.#data, bytes, at, bytes.length - at, this.#end + at);
      }
      this.#end += bytes.length;
    }
    return start;
  }

  shard(): TraceShard {
    this.#flush();
    return { rank: this.#rank, events: this.#events, data: this.#files.data };
  }

  #flush(): void {
    if (this.#lines === "") return;
    appendFileSync(this.#files.events, this.#lines);
    this.#lines = "";
  }
}

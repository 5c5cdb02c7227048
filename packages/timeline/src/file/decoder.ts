/** Bytes to timelines, as they come: in one piece or in many, also while the file still grows. */
import { TriremeError } from "@trireme/core";
import { TimelineBuilder } from "../builder.ts";
import type { Timeline } from "../timeline.ts";
import { ByteReader } from "./byte-reader.ts";
import { crc32 } from "./crc32.ts";
import { header } from "./encoder.ts";
import { Predictor } from "./predictor.ts";

/** Reads one file: give it the bytes in order, ask for the spans of the whole blocks so far. */
export class TimelineDecoder {
  readonly #spans = new TimelineBuilder({ capacity: 65_536 });
  readonly #names: number[] = [];
  /** Pairs (span, parent) whose parent may come in a later block. */
  #links: number[] = [];
  #ranks = 0;
  #rest: Uint8Array = new Uint8Array();
  #offset = 0;

  /** Bytes given that do not make a whole block yet: 0 at the end of an intact file. */
  get pending(): number {
    return this.#rest.length;
  }

  /**
   * The next bytes of the file.
   * @throws TriremeError `TIMELINE_FILE` naming the place when they are no timeline, of another
   * version, or damaged.
   */
  push(bytes: Uint8Array): void {
    const all = new Uint8Array(this.#rest.length + bytes.length);
    all.set(this.#rest);
    all.set(bytes, this.#rest.length);
    let at = 0;
    if (this.#offset === 0) {
      checkHeader(all);
      if (all.length < header.length) {
        this.#rest = all;
        return;
      }
      at = header.length;
    }
    const view = new DataView(all.buffer);
    while (at + 8 <= all.length) {
      const length = view.getUint32(at, true);
      if (at + 8 + length > all.length) break;
      const payload = all.subarray(at + 8, at + 8 + length);
      const place = this.#offset + at;
      if (crc32(payload) !== view.getUint32(at + 4, true)) {
        throw damaged(place, "its checksum does not fit");
      }
      this.#block(payload, place);
      at += 8 + length;
    }
    this.#offset += at;
    this.#rest = all.slice(at);
  }

  /** The spans of all whole blocks so far. Parents that have not come yet are left out. */
  finish(): Timeline {
    const later: number[] = [];
    for (let e = 0; e < this.#links.length; e += 2) {
      const [span, parent] = [this.#links[e]!, this.#links[e + 1]!];
      if (parent < this.#spans.length) this.#spans.link(span, parent);
      else later.push(span, parent);
    }
    this.#links = later;
    const t = this.#spans.finish();
    return { ...t, ranks: Math.max(t.ranks, this.#ranks) };
  }

  #block(payload: Uint8Array, place: number): void {
    try {
      const r = new ByteReader(payload);
      this.#readSpans(r);
      if (!r.done) throw new RangeError("bytes are left over");
    } catch (cause) {
      if (cause instanceof RangeError || cause instanceof TriremeError) {
        throw damaged(place, cause.message, cause);
      }
      throw cause;
    }
  }

  #readSpans(r: ByteReader): void {
    const n = r.varint();
    if (n > 2 ** 26) throw new RangeError(`${n} spans in one block`);
    this.#ranks = Math.max(this.#ranks, r.varint());
    for (let fresh = r.varint(); fresh > 0; fresh--) {
      let name = "";
      for (let length = r.varint(); length > 0; length--) name += String.fromCharCode(r.varint());
      this.#names.push(this.#spans.actionCode(name));
    }
    const rank = integers(r, n);
    const lane = integers(r, n);
    const kind = integers(r, n);
    const action = integers(r, n);
    const step = integers(r, n);
    const stage = integers(r, n);
    const microbatch = integers(r, n);
    const p = new Predictor();
    const start = new Float64Array(n);
    const end = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      const from = r.real(p.start(rank[i]!, lane[i]!));
      const to = r.real(p.end(kind[i]!, stage[i]!, from));
      p.sawTimes(rank[i]!, lane[i]!, kind[i]!, stage[i]!, from, to);
      start[i] = from;
      end[i] = to;
    }
    const bytes = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      const value = r.real(p.bytes(kind[i]!, stage[i]!));
      p.sawBytes(kind[i]!, stage[i]!, value);
      bytes[i] = value;
    }
    const flops = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      const value = r.real(p.flops(kind[i]!, stage[i]!));
      p.sawFlops(kind[i]!, stage[i]!, value);
      flops[i] = value;
    }
    const first = this.#spans.length;
    for (let i = 0; i < n; i++) {
      const name = this.#names[action[i]!];
      if (name === undefined) throw new RangeError(`span ${i} has the unknown action ${action[i]}`);
      this.#spans.addFast(
        rank[i]!,
        lane[i]!,
        kind[i]!,
        name,
        start[i]!,
        end[i]!,
        step[i],
        stage[i],
        microbatch[i],
        bytes[i],
        flops[i],
      );
    }
    const counts = Float64Array.from({ length: n }, () => r.signed());
    for (let i = 0; i < n; i++) {
      for (let k = 0; k < counts[i]!; k++) {
        const parent = first + i - r.signed();
        if (parent === first + i) throw new RangeError(`span ${i} has itself as parent`);
        if (parent < 0) throw new RangeError(`span ${i} has the parent ${parent}`);
        this.#links.push(first + i, parent);
      }
    }
  }
}

/**
 * The timeline in the bytes of a file. A block that was cut off at the end, as by a run that died, is
 * left out.
 * @throws TriremeError `TIMELINE_FILE` when the bytes are no timeline or damaged.
 */
export function decodeTimeline(bytes: Uint8Array): Timeline {
  const decoder = new TimelineDecoder();
  decoder.push(bytes);
  return decoder.finish();
}

function integers(r: ByteReader, n: number): Float64Array {
  const column = new Float64Array(n);
  let last = 0;
  for (let i = 0; i < n; i++) {
    last += r.signed();
    column[i] = last;
  }
  return column;
}

function checkHeader(bytes: Uint8Array): void {
  for (let i = 0; i < header.length && i < bytes.length; i++) {
    if (bytes[i] === header[i]) continue;
    throw new TriremeError(
      "TIMELINE_FILE",
      i < header.length - 1
        ? `not a timeline: byte ${i} is ${bytes[i]}, not ${header[i]} (files begin with "TRTL")`
        : `a timeline of version ${bytes[i]}: this reader knows version ${header[i]}`,
    );
  }
}

function damaged(place: number, why: string, cause?: unknown): TriremeError {
  return new TriremeError("TIMELINE_FILE", `the block at byte ${place} is damaged: ${why}`, {
    cause,
  });
}

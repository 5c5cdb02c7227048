/**
 * Timelines to bytes, block by block, so that a file grows while a run goes on and each block is
 * whole once its bytes are on disk. FORMAT.md describes the bytes.
 */
import { TriremeError } from "@trireme/core";
import type { Timeline } from "../timeline.ts";
import { ByteWriter } from "./byte-writer.ts";
import { crc32 } from "./crc32.ts";
import { Predictor } from "./predictor.ts";

/** First bytes of a file: "TRTL" and the version. */
export const header: Uint8Array = Uint8Array.of(0x54, 0x52, 0x54, 0x4c, 1);

/** Spans of a full block: enough to compress, few enough to lose little when a run dies. */
const blockSpans = 65_536;

/** Writes one file: append what `push` returns, in order. */
export class TimelineEncoder {
  readonly #names = new Map<string, number>();
  #spans = 0;
  #started = false;

  /**
   * @param written What the file holds already, as `decodeTimeline` reads it, to go on after it; the
   * file begins when left out, as it must be for a file of 0 bytes, which lacks even its header.
   * @throws TriremeError `TIMELINE_FILE` when its names are not in order of their first spans: a file
   * numbers them so, and others would be taken for them.
   */
  constructor(written?: Timeline) {
    if (written === undefined) return;
    this.#started = true;
    this.#spans = written.length;
    let known = 0;
    for (let i = 0; i < written.length; i++) {
      if (written.action[i]! > known) {
        throw new TriremeError(
          "TIMELINE_FILE",
          `action ${known} is ${JSON.stringify(written.actions[known])}, but the ${known === 0 ? "first" : "next"} that a file of these spans has is ${JSON.stringify(written.actions[written.action[i]!])}; give what decodeTimeline reads of the file`,
        );
      }
      if (written.action[i] === known) known++;
    }
    for (const name of written.actions) this.#names.set(name, this.#names.size);
  }

  /** Spans written so far. */
  get length(): number {
    return this.#spans;
  }

  /** The bytes that add a timeline's spans to the file; its parents are its own spans. */
  push(t: Timeline): Uint8Array<ArrayBuffer> {
    const parts: Uint8Array[] = [];
    if (!this.#started) parts.push(header);
    this.#started = true;
    const codes = Uint32Array.from(t.actions, (name) => this.#names.get(name) ?? 0xffffffff);
    for (let from = 0; from < t.length; from += blockSpans) {
      const to = Math.min(from + blockSpans, t.length);
      parts.push(this.#block(t, from, to, codes));
    }
    this.#spans += t.length;
    return concatenate(parts);
  }

  #block(t: Timeline, from: number, to: number, codes: Uint32Array): Uint8Array {
    const w = new ByteWriter((to - from) * 40);
    w.varint(to - from);
    w.varint(t.ranks);
    this.#newNames(w, t, from, to, codes);
    integers(w, t.rank, from, to);
    integers(w, t.lane, from, to);
    integers(w, t.kind, from, to);
    let last = 0;
    for (let i = from; i < to; i++) {
      const code = codes[t.action[i]!]!;
      w.signed(code - last);
      last = code;
    }
    w.endRun();
    integers(w, t.step, from, to);
    integers(w, t.stage, from, to);
    integers(w, t.microbatch, from, to);
    reals(w, t, from, to);
    parents(w, t, from, to);
    const payload = w.finish();
    if (payload.length > 0xffffffff) {
      throw new TriremeError(
        "TIMELINE_FILE",
        `a block of ${payload.length} bytes: at most 2^32 - 1`,
      );
    }
    const block = new ByteWriter(8);
    block.uint32(payload.length);
    block.uint32(crc32(payload));
    return concatenate([block.finish(), payload]);
  }

  /** Names that no block had before get the next codes, in order of appearance. */
  #newNames(w: ByteWriter, t: Timeline, from: number, to: number, codes: Uint32Array): void {
    const fresh: string[] = [];
    for (let i = from; i < to; i++) {
      const action = t.action[i]!;
      if (codes[action] !== 0xffffffff) continue;
      const name = t.actions[action]!;
      codes[action] = this.#names.size;
      this.#names.set(name, this.#names.size);
      fresh.push(name);
    }
    w.varint(fresh.length);
    for (const name of fresh) {
      w.varint(name.length);
      for (let i = 0; i < name.length; i++) w.varint(name.charCodeAt(i));
    }
  }
}

/** A whole timeline as the bytes of a file. */
export function encodeTimeline(t: Timeline): Uint8Array<ArrayBuffer> {
  return new TimelineEncoder().push(t);
}

function integers(w: ByteWriter, column: Int32Array | Uint8Array, from: number, to: number): void {
  let last = 0;
  for (let i = from; i < to; i++) {
    w.signed(column[i]! - last);
    last = column[i]!;
  }
  w.endRun();
}

function reals(w: ByteWriter, t: Timeline, from: number, to: number): void {
  const p = new Predictor();
  const { rank, lane, kind, stage, start, end, bytes, flops } = t;
  for (let i = from; i < to; i++) {
    w.real(start[i]!, p.start(rank[i]!, lane[i]!));
    w.real(end[i]!, p.end(kind[i]!, stage[i]!, start[i]!));
    p.sawTimes(rank[i]!, lane[i]!, kind[i]!, stage[i]!, start[i]!, end[i]!);
  }
  w.endRun();
  for (let i = from; i < to; i++) {
    w.real(bytes[i]!, p.bytes(kind[i]!, stage[i]!));
    p.sawBytes(kind[i]!, stage[i]!, bytes[i]!);
  }
  w.endRun();
  for (let i = from; i < to; i++) {
    w.real(flops[i]!, p.flops(kind[i]!, stage[i]!));
    p.sawFlops(kind[i]!, stage[i]!, flops[i]!);
  }
  w.endRun();
}

/** Numbers of parents, then how many spans back each is. */
function parents(w: ByteWriter, t: Timeline, from: number, to: number): void {
  for (let i = from; i < to; i++) w.signed(t.parentsAt[i + 1]! - t.parentsAt[i]!);
  w.endRun();
  for (let i = from; i < to; i++) {
    for (let e = t.parentsAt[i]!; e < t.parentsAt[i + 1]!; e++) w.signed(i - t.parents[e]!);
  }
  w.endRun();
}

function concatenate(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/**
 * One direction between two ranks: a ring of fixed slots, each a header of 16 words and a payload.
 * One writer, one reader; `tail` and `head` count slots written and read. A slot's words and bytes
 * are published by the atomic store of `tail` and given back by that of `head`.
 */
import { type ArenaLayout, channelControlBytes, line, slotHeaderBytes } from "./arena.ts";

export class Channel {
  readonly #words: Int32Array;
  readonly #head: number;
  readonly #tail: number;
  readonly #first: number;
  readonly #slots: number;
  readonly #stride: number;
  /** This side's own counter; the other side's is read from memory. */
  #mine: number;

  /** The channel on which `from` writes and `to` reads; `writer` says which end this is. */
  constructor(words: Int32Array, layout: ArenaLayout, from: number, to: number, writer: boolean) {
    this.#words = words;
    this.#slots = layout.slots;
    this.#stride = slotHeaderBytes + layout.slotBytes;
    const base =
      layout.channels +
      (from * layout.ranks + to) * (channelControlBytes + layout.slots * this.#stride);
    this.#head = base / 4;
    this.#tail = (base + line) / 4;
    this.#first = base + channelControlBytes;
    this.#mine = Atomics.load(words, writer ? this.#tail : this.#head);
  }

  #slot(counter: number): number {
    return this.#first + ((counter >>> 0) % this.#slots) * this.#stride;
  }

  /** Byte offset of the slot the writer fills next; -1 when no more than `spare` are free. */
  room(spare: number): number {
    const taken = (this.#mine - Atomics.load(this.#words, this.#head)) | 0;
    return taken < this.#slots - spare ? this.#slot(this.#mine) : -1;
  }

  /** Publishes the slot that `room()` gave. */
  publish(): void {
    this.#mine = (this.#mine + 1) | 0;
    Atomics.store(this.#words, this.#tail, this.#mine);
  }

  /** Slots the reader has before it. */
  get waiting(): number {
    return (Atomics.load(this.#words, this.#tail) - this.#mine) | 0;
  }

  /** Byte offset of the slot the reader reads next; -1 when there is none. */
  next(): number {
    return this.waiting > 0 ? this.#slot(this.#mine) : -1;
  }

  /** Gives the slot that `next()` gave back to the writer. */
  release(): void {
    this.#mine = (this.#mine + 1) | 0;
    Atomics.store(this.#words, this.#head, this.#mine);
  }
}

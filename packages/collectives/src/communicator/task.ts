/**
 * One call on its way: messages that go out, messages that come in, and at most one sum. A sum takes
 * the same piece from every member at once and adds them in the order of rank in the group, which
 * makes its bits the same on every run and for every way of splitting the data; results may feed
 * messages that go out while later pieces are still being summed.
 */
import { type Bytes, type Seconds, formatSeconds } from "@trireme/core";
import { addInOrder, scratch } from "./add-in-order.ts";
import { slotHeaderBytes } from "./arena.ts";
import { elementBytes, overlaps } from "./element-type.ts";
import type { Endpoint } from "./endpoint.ts";
import { announced } from "./group-table.ts";
import { type Call, printCall } from "./operation.ts";
import { type PacketKey, callOf, lengthOf, writeHeader } from "./packet-header.ts";
import { type Message, type Parts, phases } from "./parts.ts";
import { isBefore } from "./sequence.ts";

export interface TaskOptions extends Parts {
  readonly endpoint: Endpoint;
  readonly group: number;
  readonly members: readonly number[];
  readonly sequence: number;
  readonly call: Call;
}

interface Progress {
  readonly message: Message;
  moved: Bytes;
  done: boolean;
}

const track = (message: Message): Progress => ({ message, moved: 0, done: false });

export class Task {
  readonly key: PacketKey;
  readonly #endpoint: Endpoint;
  readonly #options: TaskOptions;
  readonly #out: readonly Progress[];
  readonly #in: readonly Progress[];
  readonly #flight: number;
  readonly #keys: readonly PacketKey[];
  /** Count that contributions to the sum carry. */
  readonly #sumCount: number;
  #summed: Bytes = 0;
  #sumDone: boolean;
  #finished = false;
  #moves = 0;

  constructor(options: TaskOptions) {
    const { endpoint, group, sequence, call } = options;
    this.#options = options;
    this.#endpoint = endpoint;
    this.#out = (options.out ?? []).map(track);
    this.#in = (options.in ?? []).map(track);
    this.#sumDone = options.sum === undefined;
    this.#sumCount =
      call.count >= 0 || options.sum === undefined
        ? call.count
        : options.sum.own.length / elementBytes(options.sum.type);
    this.#keys = Object.values(phases).map((phase) => ({ group, phase, sequence }));
    this.key = this.#keys[0]!;
    this.#flight = endpoint.flights.start(group, sequence, call, endpoint.now());
  }

  get finished(): boolean {
    return this.#finished;
  }

  /** Packets moved so far: a task whose number stands still is stalled. */
  get moves(): number {
    return this.#moves;
  }

  /** Whether the call is over; looks once, without waiting. Throws what the ranks failed with. */
  get done(): boolean {
    if (!this.#finished) this.#endpoint.poll();
    return this.#finished;
  }

  /** Returns when the call is over. Throws on every rank when any rank fails. */
  wait(): void {
    this.#endpoint.wait(this);
  }

  /** Moves what can be moved; whether anything was. */
  advance(): boolean {
    if (this.#finished) return false;
    const before = this.#moves;
    for (const incoming of this.#in) this.#pull(incoming);
    if (!this.#sumDone) this.#sum();
    for (const out of this.#out) this.#push(out);
    if (this.#sumDone && this.#out.every((o) => o.done) && this.#in.every((i) => i.done)) {
      this.#finished = true;
      this.#endpoint.flights.end(this.#flight, this.#endpoint.now());
      return true;
    }
    return this.#moves !== before;
  }

  /** Ranks of the arena that this task cannot go on without. */
  pending(): number[] {
    const peers = new Set<number>();
    for (const { done, message } of [...this.#out, ...this.#in]) if (!done) peers.add(message.peer);
    const { sum } = this.#options;
    if (sum !== undefined && !this.#sumDone) {
      for (const peer of sum.order) {
        if (peer !== this.#endpoint.rank && !this.#endpoint.has(peer, this.#keys[1]!)) {
          peers.add(peer);
        }
      }
    }
    return [...peers].toSorted((a, b) => a - b);
  }

  /** Whether a packet of `peer` is still to come for this task. */
  needs(peer: number): boolean {
    return (
      this.#in.some((i) => !i.done && i.message.peer === peer) ||
      (!this.#sumDone && this.#options.sum!.order.includes(peer))
    );
  }

  /** Whether the packet with this key from `peer` is one this task takes. */
  expects(peer: number, key: PacketKey): boolean {
    if (key.group !== this.key.group || key.sequence !== this.key.sequence) return false;
    if (key.phase === phases.contribution && !this.#sumDone) {
      return this.#options.sum!.order.includes(peer);
    }
    return this.#in.some(
      (i) => !i.done && i.message.peer === peer && i.message.phase === key.phase,
    );
  }

  describeClosed(peers: readonly number[]): string {
    return `${this.#title()}: rank ${this.#endpoint.rank} waits for ${plural(peers)}, which closed the communicator`;
  }

  describeStall(waited: Seconds): string {
    const { endpoint, group, call } = this.#options;
    const peers = this.pending();
    const late = peers.filter(
      (peer) =>
        call.operation !== "send" &&
        call.operation !== "receive" &&
        isBefore(announced(endpoint.words, endpoint.layout, group, peer), this.key.sequence),
    );
    const made = late.length > 0 ? `; ${plural(late)} did not call it` : "";
    return `${this.#title()}: rank ${endpoint.rank} waited ${formatSeconds(waited)} for ${plural(peers)}${made}`;
  }

  describeMismatch(peer: number, theirs: Call): string {
    return `${this.#title()}: rank ${this.#endpoint.rank} calls ${printCall(this.#options.call)}, rank ${peer} calls ${printCall(theirs)}`;
  }

  #title(): string {
    const { call, sequence, members } = this.#options;
    return `${call.operation} ${sequence >>> 0} of ${plural(members)}`;
  }

  #push(out: Progress): void {
    if (out.done) return;
    const { peer, bytes } = out.message;
    const ready = this.#ready(out);
    // Half of a channel is kept for results, which sums then write where they leave.
    const feeds = this.#options.sum?.feeds === true && out.message.phase !== phases.result;
    const spare = feeds ? Math.floor(this.#endpoint.layout.slots / 2) : 0;
    while (!out.done && (out.moved < ready || bytes.length === 0)) {
      const slot = this.#endpoint.room(peer, spare);
      if (slot < 0) return;
      const length = Math.min(this.#endpoint.layout.slotBytes, ready - out.moved);
      if (length > 0) {
        const whole = length === bytes.length;
        const piece = whole ? bytes : bytes.subarray(out.moved, out.moved + length);
        this.#endpoint.copy(this.#endpoint.bytes, slot + slotHeaderBytes, piece);
      }
      this.#publish(out, slot, length);
    }
  }

  /** Bytes of an outgoing message that may leave now. */
  #ready({ message }: Progress): Bytes {
    const { phase, bytes, relays } = message;
    if (relays !== undefined) return this.#in.find((i) => i.message === relays)!.moved;
    const fed = phase === phases.result && this.#options.sum?.feeds === true;
    return fed && !this.#sumDone ? this.#summed : bytes.length;
  }

  /** Heads and sends a slot whose payload is there. */
  #publish(out: Progress, slot: number, length: Bytes): void {
    const { peer, phase, bytes, count } = out.message;
    const { operation, type } = this.#options.call;
    const key = this.#keys[phase]!;
    writeHeader(this.#endpoint.words, slot, length, key, { operation, type, count });
    this.#endpoint.publish(peer);
    this.#moves++;
    out.moved += length;
    out.done = out.moved === bytes.length;
  }

  #pull(incoming: Progress): void {
    const { peer, phase, bytes, count } = incoming.message;
    const key = this.#keys[phase]!;
    while (!incoming.done && this.#endpoint.has(peer, key)) {
      const slot = this.#endpoint.open(peer, key);
      const length = this.#verify(slot, peer, count);
      const from = slot + slotHeaderBytes;
      if (length > 0) {
        const payload = new Uint8Array(this.#endpoint.bytes.buffer, from, length);
        this.#endpoint.copy(bytes, incoming.moved, payload);
      }
      this.#endpoint.release(peer, key);
      this.#moves++;
      incoming.moved += length;
      incoming.done = incoming.moved === bytes.length;
    }
  }

  #sum(): void {
    const { own, output, order, feeds } = this.#options.sum!;
    const endpoint = this.#endpoint;
    const key = this.#keys[1]!;
    const mine = endpoint.scratch(scratch.own);
    const leaving = this.#out.filter(
      ({ message }) => message.phase === phases.contribution && overlaps(message.bytes, output),
    );
    const fed = feeds ? this.#out.filter((out) => out.message.phase === phases.result) : [];
    for (;;) {
      for (const peer of order) if (peer !== endpoint.rank && !endpoint.has(peer, key)) return;
      // In place, the piece must have left for every member before the sum overwrites it.
      if (leaving.some((out) => !out.done)) return;
      const at = this.#summed;
      const length = Math.min(endpoint.layout.slotBytes, own.length - at);
      endpoint.copy(endpoint.bytes, mine, own.subarray(at, at + length));
      // The sum is made in the slot it leaves by where there is room in all of them.
      const direct = fed.every((out) => out.moved === at && endpoint.room(out.message.peer) >= 0);
      const slots = direct ? fed.map((out) => endpoint.room(out.message.peer)) : [];
      const result =
        slots.length > 0 ? slots[0]! + slotHeaderBytes : endpoint.scratch(scratch.result);
      addInOrder(endpoint, key, this.#options.sum!, length, result, (slot, peer) =>
        this.#verify(slot, peer, this.#sumCount),
      );
      endpoint.copy(output, at, endpoint.bytes.subarray(result, result + length));
      this.#summed += length;
      this.#moves++;
      slots.forEach((slot, i) => {
        if (i > 0) endpoint.kernel.move(slot + slotHeaderBytes, result, length);
        this.#publish(fed[i]!, slot, length);
      });
      if (this.#summed === own.length) {
        this.#sumDone = true;
        return;
      }
    }
  }

  /** Checks a packet against this rank's call; returns its length. */
  #verify(slot: number, peer: number, count: number): Bytes {
    const { words } = this.#endpoint;
    const { call } = this.#options;
    const theirs = callOf(words, slot);
    const expected = call.operation === "receive" ? "send" : call.operation;
    if (theirs.operation !== expected || theirs.type !== call.type || theirs.count !== count) {
      this.#endpoint.fail("MISMATCH", this.describeMismatch(peer, theirs));
    }
    return lengthOf(words, slot);
  }
}

function plural(ranks: readonly number[]): string {
  return `rank${ranks.length === 1 ? "" : "s"} ${ranks.join(", ")}`;
}

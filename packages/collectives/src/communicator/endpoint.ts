/**
 * One rank's end of the arena: its channels to and from every other rank, its doorbell, and the
 * tasks it has started and not finished. Waiting for any task moves all of them. A rank that can
 * move none sleeps on its doorbell until another rank publishes a packet, gives back a slot, fails
 * or closes; it never spins.
 *
 * A packet that no task can take yet stays in its channel, which holds its sender back. If this rank
 * would sleep while another task needs something from behind that packet, it is parked on the heap.
 */
import { type Seconds, TriremeError, formatSeconds } from "@trireme/core";
import { type AbortCode, recordAbort, recordedAbort, recordingRank } from "./abort-record.ts";
import { type AddKernel, addKernel } from "./add-kernel.ts";
import {
  type ArenaLayout,
  type SharedMemory,
  arenaLayout,
  rankWord,
  scratchBuffers,
  slotHeaderBytes,
} from "./arena.ts";
import { Channel } from "./channel.ts";
import { type CopyBytes, setBytes } from "./copy.ts";
import { FlightRecorder } from "./flight-record.ts";
import { type PacketKey, isPartOf, keyOf, lengthOf } from "./packet-header.ts";
import type { Task } from "./task.ts";

interface Parked {
  readonly key: PacketKey;
  readonly slot: Uint8Array;
}

/** Words of a rank's block: the bell, whether the rank sleeps, whether it has closed. */
const sleeping = 16;
const closed = 32;

/** Looks at the channels before a rank with a core of its own sleeps: some 20 µs; a wake takes 50. */
const looks = 32;

export interface EndpointOptions {
  readonly copy?: CopyBytes | undefined;
  readonly ownCore?: boolean | undefined;
  readonly onStall?: ((message: string) => void) | undefined;
}

export class Endpoint {
  readonly layout: ArenaLayout;
  readonly words: Int32Array;
  readonly bytes: Uint8Array;
  readonly kernel: AddKernel;
  readonly rank: number;
  readonly now: () => Seconds;
  readonly deadline: Seconds;
  readonly onStall: ((message: string) => void) | undefined;
  readonly flights: FlightRecorder;
  /** Copies between a tensor and the arena. */
  readonly copy: CopyBytes;
  readonly #out: Channel[] = [];
  readonly #in: Channel[] = [];
  readonly #parked: Parked[][] = [];
  readonly #bell: number;
  readonly #ownCore: boolean;
  /** Slots given back to each peer since its bell was last rung for it. */
  readonly #owed: Int32Array;
  #tasks: Task[] = [];

  constructor(
    memory: SharedMemory,
    rank: number,
    now: () => Seconds,
    deadline: Seconds,
    { ownCore = false, onStall, copy = setBytes }: EndpointOptions,
  ) {
    this.layout = arenaLayout(memory);
    this.words = new Int32Array(memory.buffer);
    this.bytes = new Uint8Array(memory.buffer);
    this.kernel = addKernel(memory);
    this.rank = rank;
    this.now = now;
    this.deadline = deadline;
    this.onStall = onStall;
    this.#ownCore = ownCore;
    this.copy = copy;
    this.flights = new FlightRecorder(this.words, this.layout, rank);
    this.#bell = rankWord(this.layout, rank);
    this.#owed = new Int32Array(this.layout.ranks);
    for (let peer = 0; peer < this.layout.ranks; peer++) {
      this.#out.push(new Channel(this.words, this.layout, rank, peer, true));
      this.#in.push(new Channel(this.words, this.layout, peer, rank, false));
      this.#parked.push([]);
    }
  }

  /** Byte offset of the payload of one of this rank's scratch slots; the last is for parked packets. */
  scratch(index: number): number {
    const stride = slotHeaderBytes + this.layout.slotBytes;
    return this.layout.scratch + (this.rank * scratchBuffers + index) * stride + slotHeaderBytes;
  }

  /** The slot this rank may fill for `peer`, or -1 when no more than `spare` are free. */
  room(peer: number, spare = 0): number {
    return this.#out[peer]!.room(spare);
  }

  publish(peer: number): void {
    this.#out[peer]!.publish();
    this.#ring(peer);
  }

  /** Whether the next packet of this message from `peer` has arrived and can be read. */
  has(peer: number, key: PacketKey): boolean {
    if (this.#parkedIndex(peer, key) >= 0) return true;
    const slot = this.#in[peer]!.next();
    return slot >= 0 && isPartOf(this.words, slot, key);
  }

  /** The slot of the packet that `has` found; valid until the next `open` or `release`. */
  open(peer: number, key: PacketKey): number {
    const parked = this.#parkedIndex(peer, key);
    if (parked < 0) return this.#in[peer]!.next();
    const slot = this.scratch(scratchBuffers - 1) - slotHeaderBytes;
    this.bytes.set(this.#parked[peer]![parked]!.slot, slot);
    return slot;
  }

  /** Whether `open` gives a copy that the next `open` overwrites. */
  parked(peer: number, key: PacketKey): boolean {
    return this.#parkedIndex(peer, key) >= 0;
  }

  /** Gives up the packet that `open` opened. */
  release(peer: number, key: PacketKey): void {
    const parked = this.#parkedIndex(peer, key);
    if (parked >= 0) {
      this.#parked[peer]!.splice(parked, 1);
      return;
    }
    this.#in[peer]!.release();
    // One wake for half a channel, not one a slot; `settle` rings for the rest before sleeping.
    if (++this.#owed[peer]! * 2 >= this.layout.slots) this.#ring(peer);
  }

  /** Rings for the slots given back since the last ring. */
  settle(): void {
    for (let peer = 0; peer < this.#owed.length; peer++)
      if (this.#owed[peer]! > 0) this.#ring(peer);
  }

  /** Whether no task is under way. */
  get isIdle(): boolean {
    return this.#tasks.length === 0;
  }

  /** Takes on a task and moves it as far as it goes. Throws what the ranks have failed with. */
  start(task: Task): void {
    this.check();
    this.#tasks.push(task);
    this.poll();
    this.settle();
  }

  /** Moves every task once; whether any moved. Throws what the ranks have failed with. */
  poll(): boolean {
    this.check();
    let moved = false;
    let finished = false;
    for (const task of this.#tasks) {
      moved = task.advance() || moved;
      finished ||= task.finished;
    }
    if (finished) this.#tasks = this.#tasks.filter((task) => !task.finished);
    return moved;
  }

  /** Sleeps and moves tasks until this one is finished; fails on all ranks at the deadline. */
  wait(task: Task): void {
    let since = this.now();
    let moves = task.moves;
    let warned = false;
    while (!task.finished) {
      const bell = Atomics.load(this.words, this.#bell);
      if (this.poll()) continue;
      this.settle();
      if (this.#ownCore && this.#look()) continue;
      Atomics.store(this.words, this.#bell + sleeping, 1);
      try {
        const gone = task.pending().filter((peer) => this.#closed(peer));
        // Again after the flag is up: what arrived before that rang no bell.
        if (this.poll() || this.#park()) continue;
        if (gone.length > 0) this.fail("CLOSED", task.describeClosed(gone));
        const time = this.now();
        if (task.moves !== moves) [since, moves, warned] = [time, task.moves, false];
        const left = this.deadline - (time - since);
        if (!(left > 0)) this.fail("DEADLINE", task.describeStall(time - since));
        const early = left - this.deadline / 2;
        if (early <= 0 && !warned && this.onStall !== undefined) {
          warned = true;
          this.onStall(task.describeStall(time - since));
        }
        const sleep = early > 0 && this.onStall !== undefined ? early : left;
        Atomics.wait(this.words, this.#bell, bell, Math.min(sleep * 1000, 2 ** 31 - 1));
      } finally {
        Atomics.store(this.words, this.#bell + sleeping, 0);
      }
    }
    this.settle();
  }

  /** Looks a few more times, which takes less than falling asleep and being woken. */
  #look(): boolean {
    for (let i = 0; i < looks; i++) if (this.poll()) return true;
    return false;
  }

  /** Finishes all tasks and tells the other ranks that no more will come. */
  close(): void {
    if (recordedAbort(this.words) === undefined) for (const task of this.#tasks) this.wait(task);
    Atomics.store(this.words, this.#bell + closed, 1);
    for (let peer = 0; peer < this.layout.ranks; peer++) this.#ring(peer);
  }

  /** Makes every rank throw `ABORTED`; this one does not throw here. */
  abort(reason: string): void {
    recordAbort(
      this.words,
      this.layout,
      "ABORTED",
      this.rank,
      `rank ${this.rank} aborted: ${reason}`,
    );
  }

  /** Makes this error the error of all ranks, and throws it. */
  fail(code: AbortCode, message: string): never {
    recordAbort(this.words, this.layout, code, this.rank, message);
    // Another rank may have been first, and may still be writing; or be stopped in the midst of it.
    const since = this.now();
    let error: TriremeError | undefined;
    while ((error = recordedAbort(this.words)) === undefined) {
      const writer = recordingRank(this.words);
      if (writer !== undefined && !(this.now() - since < this.deadline)) {
        throw new TriremeError(
          "DEADLINE",
          `rank ${this.rank} waited ${formatSeconds(this.deadline)} for rank ${writer} to say why it failed; here: ${message}`,
        );
      }
      Atomics.wait(this.words, this.#bell, Atomics.load(this.words, this.#bell), 10);
    }
    throw error;
  }

  check(): void {
    const error = recordedAbort(this.words);
    if (error !== undefined) throw error;
  }

  #closed(peer: number): boolean {
    return Atomics.load(this.words, rankWord(this.layout, peer) + closed) === 1;
  }

  #ring(peer: number): void {
    this.#owed[peer] = 0;
    const bell = rankWord(this.layout, peer);
    if (Atomics.load(this.words, bell + sleeping) === 0) return;
    Atomics.add(this.words, bell, 1);
    Atomics.notify(this.words, bell);
  }

  #parkedIndex(peer: number, key: PacketKey): number {
    const parked = this.#parked[peer]!;
    if (parked.length === 0) return -1;
    return parked.findIndex(
      (p) =>
        p.key.sequence === key.sequence && p.key.group === key.group && p.key.phase === key.phase,
    );
  }

  /** Moves packets that stand in the way of a task from their channels to the heap. */
  #park(): boolean {
    let moved = false;
    for (let peer = 0; peer < this.layout.ranks; peer++) {
      const slot = this.#in[peer]!.next();
      if (slot < 0) continue;
      const key = keyOf(this.words, slot);
      const owner = this.#tasks.find((task) => task.expects(peer, key));
      // Whatever its own task still waits for may never come while another is held up.
      if (!this.#tasks.some((task) => task !== owner && task.needs(peer))) continue;
      const length = slotHeaderBytes + lengthOf(this.words, slot);
      this.#parked[peer]!.push({ key, slot: this.bytes.slice(slot, slot + length) });
      this.#in[peer]!.release();
      this.#ring(peer);
      moved = true;
    }
    return moved;
  }
}

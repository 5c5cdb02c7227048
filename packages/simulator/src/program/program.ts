/**
 * What each rank does, in order: the form in which a schedule with its durations is handed to
 * `play`. A rank works through its instructions; computing occupies it, sends and collectives run
 * beside it unless told to block, and a receive or an await stops it until what it names is there.
 *
 * Everything is numbered and held in columns, so that 12,288 ranks with 25 million instructions take
 * a few hundred megabytes: labels are shared by all spans that say the same, and the members of a
 * process group are listed once for all its collectives.
 */
import { type Seconds, TriremeError } from "@trireme/core";
import { IntegerColumn, RealColumn } from "./columns.ts";
import type { Label } from "./label.ts";

/** Instruction codes; the argument is a work (compute), a message (send, receive), a collective, or a time. */
export const opcode = {
  compute: 0,
  send: 1,
  blockingSend: 2,
  receive: 3,
  enter: 4,
  blockingEnter: 5,
  await: 6,
  until: 7,
} as const;

/** A message from one rank to another. */
export interface Message {
  readonly from: number;
  readonly to: number;
  /** How long it occupies the sender's way out. */
  readonly duration: Seconds;
  /** From the end of that to its arrival. */
  readonly latency: Seconds;
  /** Labels of the spans of the sender and of the receiver. */
  readonly send: number;
  readonly receive: number;
}

/** A collective among the ranks of a group; it starts when all have come and their stream is free. */
export interface Collective {
  readonly group: number;
  /** Collectives of one stream run one after the other, in the order in which a rank enters them. */
  readonly stream: number;
  readonly duration: Seconds;
  /** Label of its spans. */
  readonly label: number;
}

/** Instructions of all ranks: those of rank r are `offsets[r] .. offsets[r + 1] - 1`. */
export interface Instructions {
  readonly offsets: Float64Array;
  readonly opcodes: Uint8Array;
  readonly arguments: Int32Array;
}

/** Bits of an instruction that hold its code. */
const codeBits = 3;
const mostArguments = 2 ** (31 - codeBits);

/** A program for ranks 0 to n - 1. Labels, groups, messages and collectives are declared, then used. */
export class Program {
  readonly #ranks: readonly IntegerColumn[];
  readonly #labels: Label[] = [];
  readonly #workLabel = new IntegerColumn(64);
  readonly #workDuration = new RealColumn(64);
  readonly #groups: Int32Array[] = [];
  readonly #from = new IntegerColumn(64);
  readonly #to = new IntegerColumn(64);
  readonly #messageDuration = new RealColumn(64);
  readonly #messageLatency = new RealColumn(64);
  readonly #send = new IntegerColumn(64);
  readonly #receive = new IntegerColumn(64);
  readonly #group = new IntegerColumn(64);
  readonly #stream = new IntegerColumn(64);
  readonly #collectiveDuration = new RealColumn(64);
  readonly #collectiveLabel = new IntegerColumn(64);
  readonly #times = new RealColumn(1);
  #streams = 1;

  constructor(ranks: number) {
    if (!Number.isSafeInteger(ranks) || ranks < 1) {
      throw new TriremeError("PROGRAM", `program of ${ranks} ranks: give an integer from 1 up`);
    }
    this.#ranks = Array.from({ length: ranks }, () => new IntegerColumn(16));
  }

  get ranks(): number {
    return this.#ranks.length;
  }

  /** Streams for collectives: one more than the highest named. */
  get streams(): number {
    return this.#streams;
  }

  get labels(): readonly Label[] {
    return this.#labels;
  }

  /** Members of each group, ascending as they were given. */
  get groups(): readonly Int32Array[] {
    return this.#groups;
  }

  /** Declares a label and returns its number. */
  label(label: Label): number {
    return this.#labels.push(label) - 1;
  }

  /** Declares a piece of computing, for any number of ranks, and returns its number. */
  work(duration: Seconds, label: number): number {
    this.#check(duration, label);
    this.#workDuration.push(duration);
    return this.#workLabel.push(label);
  }

  /** Declares a process group and returns its number; no rank may stand in it twice. */
  group(members: ArrayLike<number>): number {
    const list = Int32Array.from(members);
    if (list.length === 0 || new Set(list).size !== list.length) {
      throw new TriremeError(
        "PROGRAM",
        `group ${list.join(" ")}: name at least one rank, each once`,
      );
    }
    const unknown = list.find((rank) => rank < 0 || rank >= this.ranks);
    if (unknown !== undefined) {
      throw new TriremeError(
        "PROGRAM",
        `rank ${unknown} of a group is not in 0..${this.ranks - 1}`,
      );
    }
    return this.#groups.push(list) - 1;
  }

  /** Declares a message and returns its number. */
  message(m: Message): number {
    this.#check(m.duration, m.send);
    this.#check(m.latency, m.receive);
    this.#from.push(m.from);
    this.#to.push(m.to);
    this.#messageDuration.push(m.duration);
    this.#messageLatency.push(m.latency);
    this.#send.push(m.send);
    return this.#receive.push(m.receive);
  }

  /** Declares a collective and returns its number. */
  collective(c: Collective): number {
    this.#check(c.duration, c.label);
    this.#streams = Math.max(this.#streams, c.stream + 1);
    this.#group.push(c.group);
    this.#stream.push(c.stream);
    this.#collectiveDuration.push(c.duration);
    return this.#collectiveLabel.push(c.label);
  }

  /** The rank computes a declared piece of work here. */
  compute(rank: number, work: number): void {
    this.#push(rank, opcode.compute, work);
  }

  /** Its sender sends the message here; `blocks`: and waits until it has arrived. */
  send(message: number, blocks: boolean): void {
    const code = blocks ? opcode.blockingSend : opcode.send;
    this.#push(this.#from.at(message), code, message);
  }

  /** Its receiver waits for the message here. */
  receive(message: number): void {
    this.#push(this.#to.at(message), opcode.receive, message);
  }

  /** A member enters the collective here; `blocks`: and waits until it is over. */
  enter(rank: number, collective: number, blocks: boolean): void {
    this.#push(rank, blocks ? opcode.blockingEnter : opcode.enter, collective);
  }

  /** A member waits here until the collective it entered is over. */
  await(rank: number, collective: number): void {
    this.#push(rank, opcode.await, collective);
  }

  /** The rank stands still here until a time, if that has not come yet: what is replayed is at its times. */
  until(rank: number, time: Seconds): void {
    if (!(time >= 0 && time < Infinity)) {
      throw new TriremeError("PROGRAM", `until ${time} s: give a finite time of at least 0`);
    }
    this.#push(rank, opcode.until, this.#times.push(time));
  }

  /** Times that ranks stand still until. */
  times(): Float64Array {
    return this.#times.view();
  }

  /** The instructions of all ranks in a row. */
  instructions(): Instructions {
    const offsets = new Float64Array(this.ranks + 1);
    this.#ranks.forEach((list, rank) => (offsets[rank + 1] = offsets[rank]! + list.length));
    const count = offsets[this.ranks]!;
    const opcodes = new Uint8Array(count);
    const args = new Int32Array(count);
    this.#ranks.forEach((list, rank) => {
      const codes = list.view();
      for (let i = 0, at = offsets[rank]!; i < codes.length; i++, at++) {
        opcodes[at] = codes[i]! & (2 ** codeBits - 1);
        args[at] = codes[i]! >>> codeBits;
      }
    });
    return { offsets, opcodes, arguments: args };
  }

  /** Columns of works. */
  works(): { readonly duration: Float64Array; readonly label: Int32Array } {
    return { duration: this.#workDuration.view(), label: this.#workLabel.view() };
  }

  /** Columns of messages. */
  messages(): {
    readonly from: Int32Array;
    readonly to: Int32Array;
    readonly duration: Float64Array;
    readonly latency: Float64Array;
    readonly send: Int32Array;
    readonly receive: Int32Array;
  } {
    return {
      from: this.#from.view(),
      to: this.#to.view(),
      duration: this.#messageDuration.view(),
      latency: this.#messageLatency.view(),
      send: this.#send.view(),
      receive: this.#receive.view(),
    };
  }

  /** Columns of collectives. */
  collectives(): {
    readonly group: Int32Array;
    readonly stream: Int32Array;
    readonly duration: Float64Array;
    readonly label: Int32Array;
  } {
    return {
      group: this.#group.view(),
      stream: this.#stream.view(),
      duration: this.#collectiveDuration.view(),
      label: this.#collectiveLabel.view(),
    };
  }

  #check(duration: Seconds, label: number): void {
    if (duration >= 0 && duration < Infinity) return;
    const name = this.#labels[label]?.action ?? `label ${label}`;
    throw new TriremeError(
      "PROGRAM",
      `${name} takes ${duration} s: give a finite time of at least 0`,
    );
  }

  #push(rank: number, code: number, argument: number): void {
    if (argument >= mostArguments) {
      throw new TriremeError("PROGRAM", `number ${argument} is beyond ${mostArguments - 1}`);
    }
    this.#ranks[rank]!.push((argument << codeBits) | code);
  }
}

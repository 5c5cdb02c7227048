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
import type { Collective, CollectiveRow, Message, MessageRow } from "./communications.ts";
import { type Instructions, InstructionList, Shifts, flatten, opcode } from "./instructions.ts";
import type { Label } from "./label.ts";

/**
 * A program for ranks 0 to n - 1. Labels, groups, messages and collectives are declared, then used.
 *
 * Ranks that do alike can share one list of instructions. Where they name different messages or
 * collectives, a shift says how far each rank's lies from that of the rank for which the list is written.
 */
export class Program {
  readonly #listOf: Int32Array;
  readonly #lists: InstructionList[] = [];
  readonly #shifts: Shifts;
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
    this.#listOf = new Int32Array(ranks).fill(-1);
    this.#shifts = new Shifts(ranks);
  }

  get ranks(): number {
    return this.#listOf.length;
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

  /** Makes room for so many more messages, which is quicker than to grow with each. */
  reserve(messages: number): void {
    for (const column of [this.#from, this.#to, this.#send, this.#receive])
      column.reserve(messages);
    this.#messageDuration.reserve(messages);
    this.#messageLatency.reserve(messages);
  }

  /** Declares several messages and returns the number of the first; the others follow. */
  messageRow(m: MessageRow): number {
    for (let i = 0; i < m.from.length; i++) {
      this.#check(m.duration[i]!, m.send[i]!);
      this.#check(m.latency[i]!, m.receive[i]!);
    }
    this.#from.append(m.from);
    this.#to.append(m.to);
    this.#messageDuration.append(m.duration);
    this.#messageLatency.append(m.latency);
    this.#send.append(m.send);
    return this.#receive.append(m.receive);
  }

  /** Declares a collective of each of several groups and returns the number of the first; the others follow. */
  collectiveRow(c: CollectiveRow): number {
    this.#check(c.duration, c.label);
    this.#streams = Math.max(this.#streams, c.stream + 1);
    const count = c.groups.length;
    this.#group.append(c.groups);
    this.#stream.fill(c.stream, count);
    this.#collectiveDuration.fill(c.duration, count);
    return this.#collectiveLabel.fill(c.label, count);
  }

  /** Declares a shift by its move for each rank, and returns its number. */
  shift(moves: ArrayLike<number>): number {
    return this.#shifts.declare(moves);
  }

  /**
   * A rank does what another does: it runs the same list, in which the number in each instruction with a
   * shift is that of `like`, moved by as much as the shift's move for the rank is above that for `like`.
   */
  share(rank: number, like: number): void {
    if (this.#listOf[rank]! >= 0) {
      throw new TriremeError("PROGRAM", `rank ${rank} has instructions of its own`);
    }
    this.#list(like);
    this.#listOf[rank] = this.#listOf[like]!;
  }

  /** The rank computes a declared piece of work here. */
  compute(rank: number, work: number): void {
    this.#push(rank, opcode.compute, work, 0);
  }

  /** Its sender sends the message here; `blocks`: and waits until it has arrived. */
  send(message: number, blocks: boolean, shift = 0): void {
    const code = blocks ? opcode.blockingSend : opcode.send;
    this.#push(this.#from.at(message), code, message, shift);
  }

  /** Its receiver waits for the message here. */
  receive(message: number, shift = 0): void {
    this.#push(this.#to.at(message), opcode.receive, message, shift);
  }

  /** A member enters the collective here; `blocks`: and waits until it is over. */
  enter(rank: number, collective: number, blocks: boolean, shift = 0): void {
    this.#push(rank, blocks ? opcode.blockingEnter : opcode.enter, collective, shift);
  }

  /** A member waits here until the collective it entered is over. */
  await(rank: number, collective: number, shift = 0): void {
    this.#push(rank, opcode.await, collective, shift);
  }

  /** The rank stands still here until a time, if that has not come yet: what is replayed is at its times. */
  until(rank: number, time: Seconds): void {
    if (!(time >= 0 && time < Infinity)) {
      throw new TriremeError("PROGRAM", `until ${time} s: give a finite time of at least 0`);
    }
    this.#push(rank, opcode.until, this.#times.push(time), 0);
  }

  /** Times that ranks stand still until. */
  times(): Float64Array {
    return this.#times.view();
  }

  /** The instructions of all ranks. */
  instructions(): Instructions {
    for (let rank = 0; rank < this.ranks; rank++) this.#list(rank);
    return flatten(this.#lists, this.#listOf, this.#shifts);
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

  /** The list of a rank, which it gets when it is first asked for. */
  #list(rank: number): InstructionList {
    const known = this.#listOf[rank]!;
    if (known >= 0) return this.#lists[known]!;
    const list = new InstructionList();
    this.#listOf[rank] = this.#lists.push(list) - 1;
    return list;
  }

  #push(rank: number, code: number, argument: number, shift: number): void {
    this.#list(rank).push(code, argument - this.#shifts.of(shift, rank), shift);
  }
}

/**
 * What each rank does, in order: the form in which a schedule with its durations is handed to
 * `play`. A rank works through its instructions; computing occupies it, sends and collectives run
 * beside it unless told to block, and a receive or an await stops it until what it names is there.
 */
import { type Bytes, type Flops, type Seconds, TriremeError } from "@trireme/core";
import type { Lane, SpanKind } from "@trireme/timeline";

/** How a span of the timeline is labelled. */
export interface Label {
  readonly kind: SpanKind;
  readonly lane: Lane;
  readonly action: string;
  readonly stage?: number;
  readonly microbatch?: number;
  readonly bytes?: Bytes;
  readonly flops?: Flops;
}

/** Instruction codes; the argument is a message (send, receive) or a collective (the last two). */
export const opcode = { compute: 0, send: 1, receive: 2, collective: 3, await: 4 } as const;

/** A message from one rank to another. */
export interface Message {
  readonly from: number;
  readonly to: number;
  /** How long it occupies the sender's way out. */
  readonly duration: Seconds;
  /** From the end of that to its arrival. */
  readonly latency: Seconds;
  /** The spans of the sender and of the receiver. */
  readonly send: Label;
  readonly receive: Label;
}

/** A collective among ranks; it starts when all have come and their stream is free. */
export interface Collective {
  readonly members: readonly number[];
  /** Collectives of one stream run one after the other, in the order in which a rank enters them. */
  readonly stream: number;
  readonly duration: Seconds;
  readonly label: Label;
}

/** The instructions of one rank as columns of equal length. */
export interface RankProgram {
  readonly opcodes: number[];
  /** Message, collective, or for computing the index of its label. */
  readonly argument: number[];
  /** Work of computing; 0 for the rest. */
  readonly duration: number[];
  /** 1 where a send or collective holds the rank up until it is over. */
  readonly blocks: number[];
}

/** A program for ranks 0 to n - 1. Messages and collectives are declared first, then used. */
export class Program {
  readonly ranks: readonly RankProgram[];
  readonly labels: Label[] = [];
  readonly messages: Message[] = [];
  readonly collectives: Collective[] = [];
  /** Number of streams for collectives: one more than the highest named. */
  streams = 1;

  constructor(ranks: number) {
    this.ranks = Array.from({ length: ranks }, () => ({
      opcodes: [],
      argument: [],
      duration: [],
      blocks: [],
    }));
  }

  compute(rank: number, duration: Seconds, label: Label): void {
    if (!(duration >= 0 && duration < Infinity)) {
      throw new TriremeError(
        "PROGRAM",
        `${label.action} takes ${duration} s: give a finite time of at least 0`,
      );
    }
    this.#push(rank, opcode.compute, this.labels.push(label) - 1, duration, false);
  }

  /** Declares a message and returns its number. */
  message(m: Message): number {
    return this.messages.push(m) - 1;
  }

  /** Its sender sends the message here; `blocks`: and waits until it has arrived. */
  send(message: number, blocks: boolean): void {
    this.#push(this.messages[message]!.from, opcode.send, message, 0, blocks);
  }

  /** Its receiver waits for the message here. */
  receive(message: number): void {
    this.#push(this.messages[message]!.to, opcode.receive, message, 0, false);
  }

  /** Declares a collective and returns its number. */
  collective(c: Collective): number {
    this.streams = Math.max(this.streams, c.stream + 1);
    return this.collectives.push(c) - 1;
  }

  /** A member enters the collective here; `blocks`: and waits until it is over. */
  enter(rank: number, collective: number, blocks: boolean): void {
    this.#push(rank, opcode.collective, collective, 0, blocks);
  }

  /** A member waits here until the collective it entered is over. */
  await(rank: number, collective: number): void {
    this.#push(rank, opcode.await, collective, 0, false);
  }

  #push(rank: number, code: number, argument: number, duration: Seconds, blocks: boolean): void {
    const r = this.ranks[rank]!;
    r.opcodes.push(code);
    r.argument.push(argument);
    r.duration.push(duration);
    r.blocks.push(blocks ? 1 : 0);
  }
}

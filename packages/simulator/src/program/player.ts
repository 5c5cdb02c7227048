/**
 * Plays a program on an event queue: every rank takes its instructions in order, and the clock moves
 * from one end of a computation, message or collective to the next. Nothing is allocated for an event.
 */
import { EventQueue } from "@trireme/core";
import { Causes } from "./causes.ts";
import { CorePools } from "./core-pools.ts";
import { requireFinished } from "./deadlock.ts";
import { OwnWays, type Ways } from "./own-ways.ts";
import { Pace } from "./pace.ts";
import { eventBits, events, playEvent } from "./play-event.ts";
import type { Observed, PlayOptions, Played } from "./play-options.ts";
import { type Instructions, opcode, placeOf } from "./instructions.ts";
import type { Program } from "./program.ts";
import {
  type CollectiveStates,
  type MessageStates,
  collectiveStates,
  messageStates,
} from "./play-states.ts";
import type { Recorder } from "./recorder.ts";
import { SharedWays } from "./shared-ways.ts";
import { CollectiveStreams } from "./streams.ts";

export class Player {
  readonly #program: Program;
  readonly #recorder: Recorder;
  readonly #rankOf: ArrayLike<number> | undefined;
  readonly #observed: Observed | undefined;
  readonly #queue: EventQueue;
  readonly #code: Instructions;
  readonly #groups: readonly Int32Array[];
  readonly #links: boolean;
  readonly #works: ReturnType<Program["works"]>;
  readonly #messages: ReturnType<Program["messages"]>;
  readonly #collectives: ReturnType<Program["collectives"]>;
  /** Instruction of its list that each rank stands at. */
  readonly #position: Float64Array;
  readonly #causes: Causes;
  readonly #pace: Pace;
  readonly #computeStart: Float64Array;
  readonly #ways: Ways;
  readonly #message: MessageStates;
  /** Message or collective a rank waits for; -1: none. */
  readonly #waitsMessage: Int32Array;
  readonly #waitsCollective: Int32Array;
  readonly #streams: CollectiveStreams;
  readonly #collective: CollectiveStates;
  readonly #pools: CorePools | undefined;

  constructor(program: Program, recorder: Recorder, options: PlayOptions) {
    const { ranks } = program;
    this.#program = program;
    this.#recorder = recorder;
    this.#rankOf = options.rankOf;
    this.#observed = options.observed;
    this.#queue = new EventQueue(2 * ranks + 64);
    this.#code = program.instructions();
    this.#groups = program.groups;
    this.#links = recorder.links;
    this.#works = program.works();
    this.#messages = program.messages();
    this.#collectives = program.collectives();
    const { offsets, listOf } = this.#code;
    this.#position = Float64Array.from(listOf, (list) => offsets[list]!);
    this.#causes = new Causes(recorder, ranks);
    this.#pace = new Pace(this.#code, options);
    this.#computeStart = new Float64Array(ranks);
    const { network } = options;
    this.#ways =
      network === undefined
        ? new OwnWays(program, this.#queue)
        : new SharedWays(program, this.#queue, network);
    this.#message = messageStates(this.#messages.from.length, recorder.links);
    this.#waitsMessage = new Int32Array(ranks).fill(-1);
    this.#waitsCollective = new Int32Array(ranks).fill(-1);
    this.#streams = new CollectiveStreams(program, this.#code);
    this.#collective = collectiveStates(this.#collectives.group.length);
    this.#pools = CorePools.of(options.shared ?? [], ranks);
  }

  run(): Played {
    const queue = this.#queue;
    let count = 0;
    for (let rank = 0; rank < this.#position.length; rank++) this.#proceed(rank);
    this.#ways.settle();
    while (queue.size > 0) {
      const payload = queue.pop();
      const id = payload >> eventBits;
      count++;
      switch (payload & (2 ** eventBits - 1)) {
        case events.computed:
          this.#computed(id);
          break;
        case events.arrived:
          this.#hasArrived(id);
          break;
        case events.collected:
          this.#collected(id);
          break;
        case events.cores:
          this.#coresEvent(id);
          break;
        default:
          this.#ways.moved(id);
      }
      if (queue.next > queue.now) this.#ways.settle();
    }
    requireFinished(this.#program, this.#code, {
      position: this.#position,
      waitsMessage: this.#waitsMessage,
      waitsCollective: this.#waitsCollective,
      nameOf: (rank) => this.#rankOf?.[rank] ?? rank,
    });
    return { events: count, end: queue.now };
  }

  /** Runs a rank until it computes, waits or is over. */
  #proceed(rank: number): void {
    const { words, arguments: args, offsets, listOf, moves, shifts } = this.#code;
    const position = this.#position;
    const move = rank * shifts;
    const end = offsets[listOf[rank]! + 1]!;
    const now = this.#queue.now;
    for (let i = position[rank]!; i < end; i++) {
      const word = words[i]!;
      const id = args[i]! + moves[move + (word >> 3)]!;
      if (this.#observed !== undefined) this.#observed.taken[placeOf(this.#code, rank, i)] = now;
      switch (word & 7) {
        case opcode.compute:
          position[rank] = i;
          this.#compute(rank, i, id);
          return;
        case opcode.send:
          this.#send(rank, id);
          break;
        case opcode.blockingSend:
          position[rank] = i;
          this.#send(rank, id);
          this.#waitsMessage[rank] = id;
          return;
        case opcode.receive:
          if (this.#message.arrived[id] === 0) {
            position[rank] = i;
            this.#waitsMessage[rank] = id;
            return;
          }
          if (this.#links) {
            this.#causes.stoodFor(rank, this.#message.received[id]!, this.#message.end[id]!);
          }
          break;
        case opcode.enter:
          if (this.#streams.enter(rank, id)) this.#startCollective(id, this.#causes.last(rank));
          break;
        case opcode.blockingEnter:
          position[rank] = i;
          this.#waitsCollective[rank] = id;
          if (this.#streams.enter(rank, id)) this.#startCollective(id, this.#causes.last(rank));
          return;
        case opcode.until: {
          const time = this.#program.times()[id]!;
          if (time <= now) break;
          position[rank] = i;
          this.#queue.push(time, playEvent(rank, "computed"));
          return;
        }
        default:
          if (this.#collective.done[id] === 0) {
            position[rank] = i;
            this.#waitsCollective[rank] = id;
            return;
          }
          if (this.#links) {
            this.#causes.stoodFor(rank, this.#memberSpan(rank, id), this.#collective.end[id]!);
          }
      }
    }
    position[rank] = end;
  }

  #compute(rank: number, i: number, work: number): void {
    const { now } = this.#queue;
    this.#computeStart[rank] = now;
    const time = this.#works.duration[work]! * this.#pace.factor(rank, i);
    const pool = this.#pools === undefined ? -1 : this.#pools.poolOf(rank);
    if (pool < 0) {
      this.#queue.push(now + time, playEvent(rank, "computed"));
    } else {
      this.#pools!.start(pool, now, rank, time);
      this.#scheduleCores(pool);
    }
  }

  #computed(rank: number): void {
    const at = this.#position[rank]!++;
    // Works are named by all ranks of a list alike.
    const work = this.#code.arguments[at]!;
    if ((this.#code.words[at]! & 7) === opcode.until) {
      this.#proceed(rank);
      return;
    }
    const start = this.#computeStart[rank]!;
    const span = this.#recorder.span(rank, this.#works.label[work]!, start, this.#queue.now);
    if (this.#links) this.#causes.computed(rank, span, this.#queue.now);
    this.#proceed(rank);
  }

  #send(rank: number, id: number): void {
    if (this.#links) this.#message.sent[id] = this.#causes.last(rank);
    this.#ways.send(rank, id);
  }

  #hasArrived(id: number): void {
    const { from, to, send, receive } = this.#messages;
    const recorder = this.#recorder;
    const { now } = this.#queue;
    const sender = from[id]!;
    const receiver = to[id]!;
    const start = this.#ways.left[id]!;
    const sent = recorder.span(sender, send[id]!, start, now);
    const got = recorder.span(receiver, receive[id]!, start, now);
    this.#message.arrived[id] = 1;
    if (this.#links) {
      if (this.#message.sent[id]! >= 0) recorder.link(sent, this.#message.sent[id]!);
      recorder.link(got, sent);
      this.#message.received[id] = got;
      this.#message.end[id] = now;
    }
    if (this.#observed !== undefined) this.#observed.arrived[id] = now;
    if (this.#waitsMessage[sender] === id) this.#resume(sender, sent);
    if (this.#waitsMessage[receiver] === id) this.#resume(receiver, got);
  }

  /** A rank goes on after what it stood still for. */
  #resume(rank: number, span: number): void {
    if (this.#links) this.#causes.stoodFor(rank, span, this.#queue.now);
    this.#waitsMessage[rank] = -1;
    this.#waitsCollective[rank] = -1;
    this.#position[rank]!++;
    this.#proceed(rank);
  }

  #members(id: number): Int32Array {
    return this.#groups[this.#collectives.group[id]!]!;
  }

  #memberSpan(rank: number, id: number): number {
    return this.#collective.span[id]! + this.#members(id).indexOf(rank);
  }

  /** `cause` is the span whose end let it start: what its last member did, or the collective before. */
  #startCollective(id: number, cause: number): void {
    const { now } = this.#queue;
    this.#collective.cause[id] = cause;
    this.#collective.start[id] = now;
    this.#ways.collect(id);
  }

  #collected(id: number): void {
    const members = this.#members(id);
    const label = this.#collectives.label[id]!;
    const recorder = this.#recorder;
    const { now } = this.#queue;
    const start = this.#collective.start[id]!;
    const cause = this.#collective.cause[id]!;
    this.#collective.done[id] = 1;
    this.#collective.end[id] = now;
    let first = -1;
    for (let m = 0; m < members.length; m++) {
      const span = recorder.span(members[m]!, label, start, now);
      if (m === 0) first = span;
      if (this.#links && cause >= 0) recorder.link(span, cause);
    }
    this.#collective.span[id] = first;
    for (let m = 0; m < members.length; m++) {
      const next = this.#streams.after(members[m]!, id);
      if (next >= 0) this.#startCollective(next, first < 0 ? -1 : first + m);
    }
    for (let m = 0; m < members.length; m++) {
      const rank = members[m]!;
      if (this.#waitsCollective[rank] === id) this.#resume(rank, first < 0 ? -1 : first + m);
    }
  }

  #scheduleCores(pool: number): void {
    const { now } = this.#queue;
    const next = this.#pools!.next(pool);
    if (next < Infinity) this.#queue.push(Math.max(next, now), playEvent(pool, "cores"));
  }

  #coresEvent(pool: number): void {
    const rank = this.#pools!.finish(pool, this.#queue.now);
    if (rank < 0) return;
    this.#scheduleCores(pool);
    this.#computed(rank);
  }
}

/**
 * Plays a program on an event queue: every rank takes its instructions in order, and the clock moves
 * from one end of a computation, message or collective to the next. Nothing is allocated for an event.
 */
import { EventQueue, type Seconds } from "@trireme/core";
import type { Timeline } from "@trireme/timeline";
import { type Jitter, jitterFactor } from "./jitter.ts";
import { type Instructions, type Program, opcode } from "./program.ts";
import { type Recorder, TimelineRecorder, type TimelineRecorderOptions } from "./recorder.ts";
import { SharedCores } from "./shared-cores.ts";
import { CollectiveStreams } from "./streams.ts";
import { explainDeadlock } from "./deadlock.ts";

/** How a program is played. */
export interface PlayOptions {
  /** Hosts whose ranks share fewer cores than there are ranks; the others compute at full speed. */
  readonly shared?: readonly { readonly cores: number; readonly ranks: readonly number[] }[];
  /** Speed of each rank's computing: 1 as declared, 0.5 half as fast; above 0. All 1 when left out. */
  readonly speed?: ArrayLike<number>;
  /** Random variation of computing; none when left out. */
  readonly jitter?: Jitter;
  /** Name of a rank in messages; its own number when left out. */
  readonly rankOf?: ArrayLike<number>;
}

/** What playing came to. */
export interface Played {
  /** Events taken from the queue. */
  readonly events: number;
  /** Time of the last. */
  readonly end: Seconds;
}

// What an event means: payload = number × 4 + event.
const event = { computed: 0, arrived: 1, collected: 2, cores: 3 } as const;

/**
 * Plays a program that starts at 0 and hands its spans to a recorder.
 * @throws TriremeError `DEADLOCK` with the cycle of ranks that wait for each other, or with what
 * never comes.
 */
export function playInto(program: Program, recorder: Recorder, options: PlayOptions = {}): Played {
  return new Player(program, recorder, options).run();
}

/** The timeline of a program that starts at 0; throws like `playInto`. */
export function play(
  program: Program,
  options: PlayOptions & TimelineRecorderOptions = {},
): Timeline {
  const recorder = new TimelineRecorder(program.labels, options);
  playInto(program, recorder, options);
  return recorder.finish();
}

class Player {
  readonly #program: Program;
  readonly #recorder: Recorder;
  readonly #rankOf: ArrayLike<number> | undefined;
  readonly #speed: ArrayLike<number> | undefined;
  readonly #jitter: Jitter | undefined;
  readonly #queue: EventQueue;
  readonly #code: Instructions;
  readonly #works: ReturnType<Program["works"]>;
  readonly #messages: ReturnType<Program["messages"]>;
  readonly #collectives: ReturnType<Program["collectives"]>;
  readonly #position: Float64Array;
  /** Spans that the next computation of a rank waited for, by rank. */
  readonly #inputs: number[][];
  /** The span that ended last of those a rank computed or stood still for, -1: none; and its end. */
  readonly #last: Int32Array;
  readonly #lastEnd: Float64Array;
  readonly #computeStart: Float64Array;
  /** When a rank's way out is free. */
  readonly #egressFree: Float64Array;
  /** 1 where a message has arrived; its times, and its spans at both ends. */
  readonly #arrived: Uint8Array;
  readonly #messageStart: Float64Array;
  readonly #messageEnd: Float64Array;
  readonly #sendSpan: Int32Array;
  readonly #receiveSpan: Int32Array;
  /** Message or collective a rank waits for; -1: none. */
  readonly #waitsMessage: Int32Array;
  readonly #waitsCollective: Int32Array;
  readonly #streams: CollectiveStreams;
  readonly #collectiveStart: Float64Array;
  readonly #collectiveEnd: Float64Array;
  readonly #done: Uint8Array;
  /** The span whose end let a collective start, -1: none; then the span of its first member. */
  readonly #cause: Int32Array;
  readonly #collectiveSpan: Int32Array;
  readonly #pools: SharedCores[];
  readonly #poolOf: Int32Array | undefined;
  readonly #poolNext: Float64Array;

  constructor(program: Program, recorder: Recorder, options: PlayOptions) {
    const { ranks } = program;
    this.#program = program;
    this.#recorder = recorder;
    this.#rankOf = options.rankOf;
    this.#speed = options.speed;
    this.#jitter = options.jitter;
    this.#queue = new EventQueue(2 * ranks + 64);
    this.#code = program.instructions();
    this.#works = program.works();
    this.#messages = program.messages();
    this.#collectives = program.collectives();
    this.#position = this.#code.offsets.slice(0, ranks);
    this.#inputs = Array.from({ length: recorder.links ? ranks : 0 }, () => []);
    this.#last = new Int32Array(ranks).fill(-1);
    this.#lastEnd = new Float64Array(ranks);
    this.#computeStart = new Float64Array(ranks);
    this.#egressFree = new Float64Array(ranks);
    const messages = this.#messages.from.length;
    this.#arrived = new Uint8Array(messages);
    this.#messageStart = new Float64Array(messages);
    this.#messageEnd = new Float64Array(messages);
    this.#sendSpan = new Int32Array(messages).fill(-1);
    this.#receiveSpan = new Int32Array(messages);
    this.#waitsMessage = new Int32Array(ranks).fill(-1);
    this.#waitsCollective = new Int32Array(ranks).fill(-1);
    this.#streams = new CollectiveStreams(program, this.#code);
    const collectives = this.#collectives.group.length;
    this.#collectiveStart = new Float64Array(collectives);
    this.#collectiveEnd = new Float64Array(collectives);
    this.#done = new Uint8Array(collectives);
    this.#cause = new Int32Array(collectives).fill(-1);
    this.#collectiveSpan = new Int32Array(collectives).fill(-1);
    const shared = (options.shared ?? []).filter((host) => host.ranks.length > host.cores);
    this.#pools = shared.map((host) => new SharedCores(host.cores));
    this.#poolOf = shared.length === 0 ? undefined : new Int32Array(ranks).fill(-1);
    shared.forEach((host, pool) => {
      for (const rank of host.ranks) this.#poolOf![rank] = pool;
    });
    this.#poolNext = new Float64Array(shared.length).fill(Infinity);
  }

  run(): Played {
    const queue = this.#queue;
    let events = 0;
    for (let rank = 0; rank < this.#position.length; rank++) this.#proceed(rank);
    while (queue.size > 0) {
      const payload = queue.pop();
      const id = payload >> 2;
      events++;
      switch (payload & 3) {
        case event.computed:
          this.#computed(id);
          break;
        case event.arrived:
          this.#hasArrived(id);
          break;
        case event.collected:
          this.#collected(id);
          break;
        default:
          this.#coresEvent(id);
      }
    }
    this.#checkFinished();
    return { events, end: queue.now };
  }

  /** Runs a rank until it computes, waits or is over. */
  #proceed(rank: number): void {
    const { opcodes, arguments: args, offsets } = this.#code;
    const position = this.#position;
    const end = offsets[rank + 1]!;
    const now = this.#queue.now;
    for (let i = position[rank]!; i < end; i++) {
      const id = args[i]!;
      position[rank] = i;
      switch (opcodes[i]!) {
        case opcode.compute: {
          this.#computeStart[rank] = now;
          const time = this.#works.duration[id]! * this.#factor(rank, i);
          const pool = this.#poolOf === undefined ? -1 : this.#poolOf[rank]!;
          if (pool < 0) {
            this.#queue.push(now + time, rank * 4 + event.computed);
          } else {
            this.#pools[pool]!.start(now, rank, time);
            this.#rescheduleCores(pool);
          }
          return;
        }
        case opcode.send:
          this.#send(rank, id);
          break;
        case opcode.blockingSend:
          this.#send(rank, id);
          this.#waitsMessage[rank] = id;
          return;
        case opcode.receive:
          if (this.#arrived[id] === 0) {
            this.#waitsMessage[rank] = id;
            return;
          }
          this.#stoodFor(rank, this.#receiveSpan[id]!, this.#messageEnd[id]!);
          break;
        case opcode.enter:
          if (this.#streams.enter(rank, id)) this.#startCollective(id, this.#last[rank]!);
          break;
        case opcode.blockingEnter:
          this.#waitsCollective[rank] = id;
          if (this.#streams.enter(rank, id)) this.#startCollective(id, this.#last[rank]!);
          return;
        default:
          if (this.#done[id] === 0) {
            this.#waitsCollective[rank] = id;
            return;
          }
          this.#stoodFor(rank, this.#memberSpan(rank, id), this.#collectiveEnd[id]!);
      }
    }
    position[rank] = end;
  }

  /** What multiplies a computation: the rank's slowness, and chance. */
  #factor(rank: number, i: number): number {
    let factor = this.#speed === undefined ? 1 : 1 / this.#speed[rank]!;
    if (this.#jitter !== undefined) {
      factor *= jitterFactor(this.#jitter, rank, i - this.#code.offsets[rank]!);
    }
    return factor;
  }

  #computed(rank: number): void {
    const work = this.#code.arguments[this.#position[rank]!]!;
    this.#position[rank]!++;
    const start = this.#computeStart[rank]!;
    const span = this.#recorder.span(rank, this.#works.label[work]!, start, this.#queue.now);
    if (this.#recorder.links) {
      const inputs = this.#inputs[rank]!;
      for (const input of inputs) this.#recorder.link(span, input);
      inputs.length = 0;
    }
    this.#last[rank] = span;
    this.#lastEnd[rank] = this.#queue.now;
    this.#proceed(rank);
  }

  #send(rank: number, id: number): void {
    const start = Math.max(this.#queue.now, this.#egressFree[rank]!);
    const free = start + this.#messages.duration[id]!;
    this.#egressFree[rank] = free;
    this.#messageStart[id] = start;
    this.#sendSpan[id] = this.#last[rank]!;
    this.#queue.push(free + this.#messages.latency[id]!, id * 4 + event.arrived);
  }

  #hasArrived(id: number): void {
    const { from, to, send, receive } = this.#messages;
    const recorder = this.#recorder;
    const { now } = this.#queue;
    const [sender, receiver] = [from[id]!, to[id]!];
    const start = this.#messageStart[id]!;
    const sent = recorder.span(sender, send[id]!, start, now);
    const got = recorder.span(receiver, receive[id]!, start, now);
    if (recorder.links) {
      if (this.#sendSpan[id]! >= 0) recorder.link(sent, this.#sendSpan[id]!);
      recorder.link(got, sent);
    }
    this.#arrived[id] = 1;
    this.#receiveSpan[id] = got;
    this.#messageEnd[id] = now;
    if (this.#waitsMessage[sender] === id) this.#resume(sender, sent);
    if (this.#waitsMessage[receiver] === id) this.#resume(receiver, got);
  }

  /** A rank goes on after what it stood still for. */
  #resume(rank: number, span: number): void {
    this.#stoodFor(rank, span, this.#queue.now);
    this.#waitsMessage[rank] = -1;
    this.#waitsCollective[rank] = -1;
    this.#position[rank]!++;
    this.#proceed(rank);
  }

  #stoodFor(rank: number, span: number, end: Seconds): void {
    if (this.#recorder.links) this.#inputs[rank]!.push(span);
    if (end < this.#lastEnd[rank]!) return;
    this.#last[rank] = span;
    this.#lastEnd[rank] = end;
  }

  #members(id: number): Int32Array {
    return this.#program.groups[this.#collectives.group[id]!]!;
  }

  #memberSpan(rank: number, id: number): number {
    if (!this.#recorder.links) return -1;
    return this.#collectiveSpan[id]! + this.#members(id).indexOf(rank);
  }

  /** `cause` is the span whose end let it start: what its last member did, or the collective before. */
  #startCollective(id: number, cause: number): void {
    const { now } = this.#queue;
    this.#cause[id] = cause;
    this.#collectiveStart[id] = now;
    this.#queue.push(now + this.#collectives.duration[id]!, id * 4 + event.collected);
  }

  #collected(id: number): void {
    const members = this.#members(id);
    const label = this.#collectives.label[id]!;
    const recorder = this.#recorder;
    const { now } = this.#queue;
    const [start, cause] = [this.#collectiveStart[id]!, this.#cause[id]!];
    this.#done[id] = 1;
    this.#collectiveEnd[id] = now;
    let first = -1;
    for (let m = 0; m < members.length; m++) {
      const span = recorder.span(members[m]!, label, start, now);
      if (m === 0) first = span;
      if (recorder.links && cause >= 0) recorder.link(span, cause);
    }
    this.#collectiveSpan[id] = first;
    for (let m = 0; m < members.length; m++) {
      const next = this.#streams.after(members[m]!, id);
      if (next >= 0) this.#startCollective(next, first < 0 ? -1 : first + m);
    }
    for (let m = 0; m < members.length; m++) {
      const rank = members[m]!;
      if (this.#waitsCollective[rank] === id) this.#resume(rank, first < 0 ? -1 : first + m);
    }
  }

  #rescheduleCores(pool: number): void {
    const next = this.#pools[pool]!.next();
    this.#poolNext[pool] = next;
    if (next < Infinity) this.#queue.push(Math.max(next, this.#queue.now), pool * 4 + event.cores);
  }

  #coresEvent(pool: number): void {
    // Events from before another job came or went are stale.
    if (this.#queue.now < this.#poolNext[pool]!) return;
    const rank = this.#pools[pool]!.finish(this.#queue.now);
    this.#rescheduleCores(pool);
    this.#computed(rank);
  }

  #checkFinished(): void {
    const { offsets } = this.#code;
    const stuck = this.#position.findIndex((at, rank) => at < offsets[rank + 1]!);
    if (stuck < 0) return;
    throw explainDeadlock(this.#program, this.#code, {
      position: this.#position,
      waitsMessage: this.#waitsMessage,
      waitsCollective: this.#waitsCollective,
      nameOf: (rank) => this.#rankOf?.[rank] ?? rank,
    });
  }
}

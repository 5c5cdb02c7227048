/**
 * Plays a program on an event queue: every rank takes its instructions in order, and the clock moves
 * from one end of a computation, message or collective to the next.
 */
import { EventQueue, type Seconds, TriremeError } from "@trireme/core";
import { type Timeline, TimelineBuilder, kindCode, laneCode } from "@trireme/timeline";
import { CollectiveStreams } from "./collective-streams.ts";
import { type Label, type Program, opcode } from "./program.ts";
import { SharedCores } from "./shared-cores.ts";

/** How a program is played. */
export interface PlayOptions {
  /** Rank that each rank of the program has in the timeline; its own number when absent. */
  readonly rankOf?: readonly number[];
  /** Hosts whose ranks share fewer cores than there are ranks; the others compute at full speed. */
  readonly shared?: readonly { readonly cores: number; readonly ranks: readonly number[] }[];
  /** Step number for the spans. */
  readonly step?: number;
}

// What an event means: payload = number × 4 + event.
const event = { computed: 0, arrived: 1, collected: 2, cores: 3 } as const;

/**
 * The timeline of a program that starts at 0.
 * @throws TriremeError `DEADLOCK` naming a rank that waits for what never comes.
 */
export function play(program: Program, options: PlayOptions = {}): Timeline {
  return new Player(program, options).run();
}

class Player {
  readonly #program: Program;
  readonly #queue = new EventQueue(1024);
  readonly #spans: TimelineBuilder;
  readonly #rankOf: (rank: number) => number;
  readonly #step: number;
  readonly #position: Int32Array;
  /** Spans that the next computation of a rank waited for, by rank. */
  readonly #inputs: number[][];
  /** The span that ended last of those a rank computed or stood still for, -1: none; and its end. */
  readonly #last: Int32Array;
  readonly #lastEnd: Float64Array;
  readonly #computeStart: Float64Array;
  /** When a rank's way out is free. */
  readonly #egressFree: Float64Array;
  /** Span of each arrived message at its receiver; -1 before. */
  readonly #arrived: Int32Array;
  readonly #messageStart: Float64Array;
  readonly #messageEnd: Float64Array;
  readonly #sendSpan: Int32Array;
  /** Message or collective a rank waits for; -1: none. */
  readonly #waitsMessage: Int32Array;
  readonly #waitsCollective: Int32Array;
  readonly #streams: CollectiveStreams;
  readonly #collectiveStart: Float64Array;
  readonly #collectiveEnd: Float64Array;
  readonly #done: Uint8Array;
  /** The span whose end let a collective start; -1: none. */
  readonly #cause: Int32Array;
  /** Span of the first member; those of the others follow in their order. */
  readonly #collectiveSpan: Int32Array;
  readonly #pools: SharedCores[];
  readonly #poolOf: Int32Array;
  readonly #poolNext: Float64Array;

  constructor(program: Program, options: PlayOptions) {
    const ranks = program.ranks.length;
    this.#program = program;
    this.#spans = new TimelineBuilder({ capacity: 4096 });
    this.#rankOf = (rank) => options.rankOf?.[rank] ?? rank;
    this.#step = options.step ?? 0;
    this.#position = new Int32Array(ranks);
    this.#inputs = Array.from({ length: ranks }, () => []);
    this.#last = new Int32Array(ranks).fill(-1);
    this.#lastEnd = new Float64Array(ranks);
    this.#computeStart = new Float64Array(ranks);
    this.#egressFree = new Float64Array(ranks);
    this.#arrived = new Int32Array(program.messages.length).fill(-1);
    this.#messageStart = new Float64Array(program.messages.length);
    this.#messageEnd = new Float64Array(program.messages.length);
    this.#sendSpan = new Int32Array(program.messages.length).fill(-1);
    this.#waitsMessage = new Int32Array(ranks).fill(-1);
    this.#waitsCollective = new Int32Array(ranks).fill(-1);
    this.#streams = new CollectiveStreams(program.collectives, ranks, program.streams);
    this.#collectiveStart = new Float64Array(program.collectives.length);
    this.#collectiveEnd = new Float64Array(program.collectives.length);
    this.#done = new Uint8Array(program.collectives.length);
    this.#cause = new Int32Array(program.collectives.length).fill(-1);
    this.#collectiveSpan = new Int32Array(program.collectives.length).fill(-1);
    const shared = (options.shared ?? []).filter((host) => host.ranks.length > host.cores);
    this.#pools = shared.map((host) => new SharedCores(host.cores));
    this.#poolOf = new Int32Array(ranks).fill(-1);
    shared.forEach((host, pool) => {
      for (const rank of host.ranks) this.#poolOf[rank] = pool;
    });
    this.#poolNext = new Float64Array(shared.length).fill(Infinity);
  }

  run(): Timeline {
    const queue = this.#queue;
    for (let rank = 0; rank < this.#position.length; rank++) this.#proceed(rank);
    while (queue.size > 0) {
      const payload = queue.pop();
      const id = payload >> 2;
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
    return this.#spans.finish();
  }

  /** Runs a rank until it computes, waits or is over. */
  #proceed(rank: number): void {
    const { opcodes, argument, duration, blocks } = this.#program.ranks[rank]!;
    const now = this.#queue.now;
    while (this.#position[rank]! < opcodes.length) {
      const i = this.#position[rank]!;
      const id = argument[i]!;
      switch (opcodes[i]!) {
        case opcode.compute: {
          this.#computeStart[rank] = now;
          const pool = this.#poolOf[rank]!;
          if (pool < 0) {
            this.#queue.push(now + duration[i]!, rank * 4 + event.computed);
          } else {
            this.#pools[pool]!.start(now, rank, duration[i]!);
            this.#rescheduleCores(pool);
          }
          return;
        }
        case opcode.send:
          this.#send(rank, id);
          if (blocks[i] === 1) {
            this.#waitsMessage[rank] = id;
            return;
          }
          break;
        case opcode.receive:
          if (this.#arrived[id]! < 0) {
            this.#waitsMessage[rank] = id;
            return;
          }
          this.#stoodFor(rank, this.#arrived[id]!, this.#messageEnd[id]!);
          break;
        case opcode.collective:
          if (this.#streams.enter(rank, id)) this.#startCollective(id, this.#last[rank]!);
          if (blocks[i] === 1) {
            this.#waitsCollective[rank] = id;
            return;
          }
          break;
        default:
          if (this.#done[id] === 0) {
            this.#waitsCollective[rank] = id;
            return;
          }
          this.#stoodFor(rank, this.#memberSpan(rank, id), this.#collectiveEnd[id]!);
      }
      this.#position[rank]!++;
    }
  }

  #computed(rank: number): void {
    const i = this.#position[rank]!++;
    const label = this.#program.labels[this.#program.ranks[rank]!.argument[i]!]!;
    const span = this.#span(rank, label, this.#computeStart[rank]!);
    for (const input of this.#inputs[rank]!) this.#spans.link(span, input);
    this.#inputs[rank] = [];
    this.#last[rank] = span;
    this.#lastEnd[rank] = this.#queue.now;
    this.#proceed(rank);
  }

  #send(rank: number, id: number): void {
    const { duration, latency } = this.#program.messages[id]!;
    const start = Math.max(this.#queue.now, this.#egressFree[rank]!);
    this.#egressFree[rank] = start + duration;
    this.#messageStart[id] = start;
    this.#sendSpan[id] = this.#last[rank]!;
    this.#queue.push(start + duration + latency, id * 4 + event.arrived);
  }

  #hasArrived(id: number): void {
    const m = this.#program.messages[id]!;
    const start = this.#messageStart[id]!;
    const sent = this.#span(m.from, m.send, start);
    if (this.#sendSpan[id]! >= 0) this.#spans.link(sent, this.#sendSpan[id]!);
    const got = this.#span(m.to, m.receive, start);
    this.#spans.link(got, sent);
    this.#arrived[id] = got;
    this.#messageEnd[id] = this.#queue.now;
    if (this.#waitsMessage[m.from] === id) this.#resume(m.from, sent);
    if (this.#waitsMessage[m.to] === id) this.#resume(m.to, got);
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
    this.#inputs[rank]!.push(span);
    if (end < this.#lastEnd[rank]!) return;
    this.#last[rank] = span;
    this.#lastEnd[rank] = end;
  }

  #memberSpan(rank: number, id: number): number {
    return this.#collectiveSpan[id]! + this.#program.collectives[id]!.members.indexOf(rank);
  }

  /** `cause` is the span whose end let it start: what its last member did, or the collective before. */
  #startCollective(id: number, cause: number): void {
    this.#cause[id] = cause;
    this.#collectiveStart[id] = this.#queue.now;
    const end = this.#queue.now + this.#program.collectives[id]!.duration;
    this.#queue.push(end, id * 4 + event.collected);
  }

  #collected(id: number): void {
    const { members, label } = this.#program.collectives[id]!;
    this.#done[id] = 1;
    this.#collectiveEnd[id] = this.#queue.now;
    this.#collectiveSpan[id] = this.#spans.length;
    for (const rank of members) {
      const span = this.#span(rank, label, this.#collectiveStart[id]!);
      if (this.#cause[id]! >= 0) this.#spans.link(span, this.#cause[id]!);
    }
    for (const next of this.#streams.finish(id)) {
      this.#startCollective(next.id, this.#memberSpan(next.rank, id));
    }
    for (const rank of members) {
      if (this.#waitsCollective[rank] === id) this.#resume(rank, this.#memberSpan(rank, id));
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

  #span(rank: number, label: Label, start: Seconds): number {
    const { kind, lane, action, stage = -1, microbatch = -1, bytes = 0, flops = 0 } = label;
    return this.#spans.addFast(
      this.#rankOf(rank),
      laneCode(lane),
      kindCode(kind),
      this.#spans.actionCode(action),
      start,
      this.#queue.now,
      this.#step,
      stage,
      microbatch,
      bytes,
      flops,
    );
  }

  #checkFinished(): void {
    const { ranks, messages, collectives } = this.#program;
    ranks.forEach(({ opcodes, argument }, rank) => {
      const i = this.#position[rank]!;
      if (i >= opcodes.length) return;
      const id = argument[i]!;
      const what =
        this.#waitsMessage[rank]! >= 0
          ? `${messages[id]!.receive.action} from rank ${this.#rankOf(messages[id]!.from)}, which never sends it`
          : `${collectives[id]!.label.action}, which never starts on all of its ${collectives[id]!.members.length} ranks`;
      throw new TriremeError("DEADLOCK", `rank ${this.#rankOf(rank)} waits for ${what}`);
    });
  }
}

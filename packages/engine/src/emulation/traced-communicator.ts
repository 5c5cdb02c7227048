/** A communicator that notes every call before it passes it on. */
import type { Communicator, Elements, Work } from "@trireme/collectives";
import type { Seconds } from "@trireme/core";
import { CallCommunicator } from "./call-communicator.ts";
import { digest } from "./digest.ts";
import { type GroupCall, callExtent, partOf, takersOf } from "./group-call.ts";
import { CallNumbers, type TurnKind } from "./trace.ts";
import type { TraceSink } from "./trace-sink.ts";

/** What is noted about one rank, and where. */
export class TraceRecorder {
  readonly #sink: TraceSink;
  readonly #now: () => Seconds;
  readonly #keptFor: ReadonlySet<number> | undefined;
  #groups = 0;
  #calls = 0;
  #last: Seconds;

  /** @param keptFor World ranks for which data is kept: those that may be run later; left out, all. */
  constructor(sink: TraceSink, now: () => Seconds, keptFor?: readonly number[]) {
    this.#sink = sink;
    this.#now = now;
    this.#keptFor = keptFor && new Set(keptFor);
    this.#last = now();
  }

  /** Notes a group; returns its number. */
  group(members: readonly number[], ordinal: number): number {
    this.#sink.event({ kind: "group", members, ordinal });
    return this.#groups++;
  }

  turn(request: TurnKind): void {
    this.#sink.event({ kind: "turn", request });
    this.#calls = 0;
    this.#last = this.#now();
  }

  reply(lossSum: number): void {
    this.#sink.event({ kind: "reply", lossSum });
  }

  /** Notes a call; returns its number in the turn. `takers` are the world ranks that get its data. */
  call(
    group: number,
    sequence: number,
    call: GroupCall,
    takers: readonly number[],
    ranks: number,
  ): number {
    const { operation, peer, input, sends } = call;
    const isKept = takers.some((taker) => this.#keptFor?.has(taker) ?? true);
    const each = sends && Array.from({ length: ranks }, (_, r) => r);
    const parts = input && (each?.map((r) => partOf(input, sends, r)) ?? [input]);
    this.#sink.event({
      kind: "call",
      gap: this.#gap(),
      operation,
      group,
      sequence,
      peer,
      ...callExtent(call),
      digest: digest(input),
      offset: isKept && parts !== undefined ? this.#sink.keep(parts.map(bytesOf)) : -1,
      ...(parts !== undefined && each !== undefined && { parts: parts.map((p) => p.length) }),
    });
    // What noting it took is not the rank's own time.
    this.#last = this.#now();
    return this.#calls++;
  }

  /** Notes that the rank waits for a call of this turn; what it does next begins when `wait` is over. */
  wait(call: number, wait: () => void): void {
    this.#sink.event({ kind: "wait", gap: this.#gap(), call });
    wait();
    this.#last = this.#now();
  }

  #gap(): Seconds {
    const time = this.#now();
    const gap = time - this.#last;
    this.#last = time;
    return gap;
  }
}

function bytesOf(data: Elements): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

export class TracedCommunicator extends CallCommunicator {
  readonly #world: number;
  readonly #recorder: TraceRecorder;
  readonly #inner: Communicator | undefined;
  readonly #number: number;
  readonly #sequences = new CallNumbers();

  /**
   * @param world This rank among all.
   * @param inner Carries the calls out; left out, they are over at once and move nothing.
   */
  constructor(
    world: number,
    members: readonly number[],
    recorder: TraceRecorder,
    inner: Communicator | undefined,
    ordinal = 0,
    made?: Map<string, number>,
  ) {
    super(world, members, made);
    this.#world = world;
    this.#recorder = recorder;
    this.#inner = inner;
    this.#number = recorder.group(members, ordinal);
  }

  abort(reason: string): void {
    this.#inner?.abort(reason);
  }

  close(): void {
    this.#inner?.close();
  }

  protected subgroup(members: readonly number[], ordinal: number): Communicator {
    const inner = this.#inner?.group(members.map((member) => this.members.indexOf(member)));
    return new TracedCommunicator(this.#world, members, this.#recorder, inner, ordinal, this.made);
  }

  protected perform(call: GroupCall): Work {
    const recorder = this.#recorder;
    const takers = takersOf(call, this.rank, this.ranks).map((taker) => this.members[taker]!);
    const sequence = this.#sequences.next(call);
    const number = recorder.call(this.#number, sequence, call, takers, this.ranks);
    const work = this.#inner && call.on(this.#inner);
    let waited = false;
    return {
      get done(): boolean {
        return work?.done ?? true;
      },
      wait: (): void => {
        if (waited) return;
        waited = true;
        recorder.wait(number, () => work?.wait());
      },
    };
  }
}

/**
 * One training step as a program: a lowered schedule with the durations of its actions, the
 * collectives inside them (step-actions.ts), and data parallelism around them (gradient-sync.ts).
 */
import type { Seconds } from "@trireme/core";
import { actionAt, kindCode, printAction } from "@trireme/schedulers";
import type { SpanKind } from "@trireme/timeline";
import { Program } from "../program/program.ts";
import type { SimulatedRanks } from "./fold.ts";
import { GradientSync } from "./gradient-sync.ts";
import { StepActions } from "./step-actions.ts";
import type { StepDescription, Transfer } from "./step-description.ts";
import { StepGroups } from "./step-groups.ts";

/**
 * The program of one step, for the simulated ranks in their order. Ranks of one pipeline coordinate run
 * one list of instructions, unless what they compute varies, or how long they load.
 */
export function stepProgram(o: StepDescription): Program {
  const { ranks, loading } = o;
  const program = new Program(ranks.count);
  const writer = new RankWriter(program, o);
  const { alike } = writer.actions;
  for (let p = 0; p < o.schedule.ranks; p++) {
    const written = new Map<number, number>();
    for (let rank = ranks.first[p]!; rank < ranks.first[p + 1]!; rank++) {
      const seconds = loading?.(ranks.rankOf[rank]!) ?? 0;
      const like = alike ? written.get(seconds) : undefined;
      if (like === undefined) {
        written.set(seconds, rank);
        writer.write(rank, seconds);
      } else program.share(rank, like);
    }
  }
  return program;
}

/** Writes the instructions of ranks. */
class RankWriter {
  readonly #program: Program;
  readonly #o: StepDescription;
  readonly #messages: Messages;
  readonly #groups: StepGroups;
  readonly #sync: GradientSync;
  readonly actions: StepActions;
  readonly #load: number;

  constructor(program: Program, o: StepDescription) {
    this.#program = program;
    this.#o = o;
    this.#messages = new Messages(program, o);
    this.#groups = new StepGroups(program, o.ranks);
    this.#sync = new GradientSync(program, o, this.#groups);
    this.actions = new StepActions(program, o, this.#groups, (i) => this.#sync.cuts(i));
    this.#load = program.label({ kind: "load", lane: "host", action: "load" });
  }

  write(rank: number, loading: Seconds): void {
    const { schedule: s, ranks, blockingSends } = this.#o;
    const program = this.#program;
    const sync = this.#sync;
    const p = ranks.stageRank[rank]!;
    sync.begin(rank);
    if (loading > 0) program.compute(rank, program.work(loading, this.#load));
    for (let i = s.offsets[p]!; i < s.offsets[p + 1]!; i++) {
      const kind = s.kind[i]!;
      if (kind === kindCode.SEND_F || kind === kindCode.SEND_B) {
        program.send(this.#messages.sent(i, rank), blockingSends, this.#groups.shiftAlong(p));
      } else if (kind === kindCode.RECV_F || kind === kindCode.RECV_B) {
        const shift = this.#groups.shiftAlong(this.#messages.sender(i));
        program.receive(this.#messages.received(i, rank), shift);
      }
      // UNSHARD, RESHARD and REDUCE_GRAD have no parts: what they do follows from the plan.
      const slices = this.actions.slices(i);
      for (let slice = 0; slice < slices; slice++) {
        sync.before(rank, i, slice);
        this.actions.run(rank, i, slice);
        sync.after(rank, i, slice);
      }
    }
    sync.end(rank);
  }
}

/** The messages of a step: one for each SEND and each rank that sends it, in a row. */
class Messages {
  readonly #ranks: SimulatedRanks;
  readonly #schedule: StepDescription["schedule"];
  /** By action: its first message, of a receive that of its send; and the pipeline rank that sends. */
  readonly #first: Int32Array;
  readonly #sender: Int32Array;

  constructor(program: Program, o: StepDescription) {
    const { schedule: s, ranks } = o;
    this.#ranks = ranks;
    this.#schedule = s;
    this.#first = new Int32Array(s.kind.length).fill(-1);
    this.#sender = new Int32Array(s.kind.length).fill(-1);
    const sends = new Map<number, number>();
    const ways = new Map<number, Way>();
    let count = 0;
    for (let i = 0; i < s.kind.length; i++) {
      if (s.kind[i] !== kindCode.SEND_F && s.kind[i] !== kindCode.SEND_B) continue;
      const p = s.stageRank[s.stage[i]!]!;
      count += ranks.first[p + 1]! - ranks.first[p]!;
    }
    program.reserve(count);
    for (let i = 0; i < s.kind.length; i++) {
      const up = s.kind[i] === kindCode.SEND_F;
      if (!up && s.kind[i] !== kindCode.SEND_B) continue;
      const [from, to] = [s.stageRank[s.stage[i]!]!, s.stageRank[s.stage[i]! + (up ? 1 : -1)]!];
      const way = from * s.ranks + to;
      let known = ways.get(way);
      if (known === undefined) ways.set(way, (known = wayBetween(o, from, to)));
      this.#sender[i] = from;
      this.#first[i] = declare(program, o, i, known);
      sends.set(this.#key(i, 0, up), i);
    }
    for (let i = 0; i < s.kind.length; i++) {
      const up = s.kind[i] === kindCode.RECV_F;
      if (!up && s.kind[i] !== kindCode.RECV_B) continue;
      const send = sends.get(this.#key(i, up ? -1 : 1, up))!;
      this.#first[i] = this.#first[send]!;
      this.#sender[i] = this.#sender[send]!;
    }
  }

  /** The message that a rank sends by action `i`. */
  sent(i: number, rank: number): number {
    return this.#first[i]! + rank - this.#ranks.first[this.#sender[i]!]!;
  }

  /** Pipeline rank that sends what is sent or received by action `i`. */
  sender(i: number): number {
    return this.#sender[i]!;
  }

  /** The message that a rank receives by action `i`. */
  received(i: number, rank: number): number {
    return this.sent(i, this.#ranks.along(rank, this.#sender[i]!));
  }

  #key(i: number, step: number, up: boolean): number {
    const { stage, microbatch, microbatches } = this.#schedule;
    return 2 * ((stage[i]! + step) * microbatches + microbatch[i]!) + (up ? 0 : 1);
  }
}

/** What the messages between two pipeline ranks have in common, by rank that sends. */
interface Way {
  readonly from: Int32Array;
  readonly to: Int32Array;
  readonly duration: Float64Array;
  readonly latency: Float64Array;
  /** Ways that differ, and which of them each rank has. */
  readonly transfers: readonly Transfer[];
  readonly transferOf: Int32Array;
}

function wayBetween(o: StepDescription, from: number, to: number): Way {
  const { ranks } = o;
  const { first, rankOf } = ranks;
  const senders = Int32Array.from(
    { length: first[from + 1]! - first[from]! },
    (_, i) => first[from]! + i,
  );
  const receivers = senders.map((rank) => ranks.along(rank, to));
  const each = Array.from(senders, (rank, i) => o.transfer(rankOf[rank]!, rankOf[receivers[i]!]!));
  const transfers = [...new Set(each)];
  return {
    from: senders,
    to: receivers,
    duration: Float64Array.from(each, ({ duration }) => duration),
    latency: Float64Array.from(each, ({ latency }) => latency),
    transfers,
    transferOf: Int32Array.from(each, (transfer) => transfers.indexOf(transfer)),
  };
}

/** Declares the messages of a SEND for all ranks that do it; returns the first. */
function declare(program: Program, { schedule: s }: StepDescription, i: number, way: Way): number {
  const action = actionAt(s, i);
  const { stage, microbatch } = action;
  const up = action.kind === "SEND_F";
  const next = stage + (up ? 1 : -1);
  const received = printAction({ stage: next, kind: up ? "RECV_F" : "RECV_B", microbatch });
  const labels = (kind: SpanKind, name: string, own: number): Int32Array => {
    const list = way.transfers.map(({ lane, bytes }) =>
      program.label({ kind, lane, action: name, stage: own, microbatch, bytes }),
    );
    return way.transferOf.map((transfer) => list[transfer]!);
  };
  const send = labels("send", printAction(action), stage);
  const receive = labels("receive", received, next);
  return program.messageRow({ ...way, send, receive });
}

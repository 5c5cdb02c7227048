/**
 * One training step as a program: a lowered schedule with the durations of its actions, the
 * collectives inside them (step-actions.ts), and data parallelism around them (gradient-sync.ts).
 */
import { actionAt, kindCode, printAction } from "@trireme/schedulers";
import type { Lane, SpanKind } from "@trireme/timeline";
import { Program } from "../program/program.ts";
import type { SimulatedRanks } from "./fold.ts";
import { GradientSync } from "./gradient-sync.ts";
import { StepActions } from "./step-actions.ts";
import type { StepDescription, Transfer } from "./step-description.ts";
import { StepGroups } from "./step-groups.ts";

/** The program of one step, for the simulated ranks in their order. */
export function stepProgram(o: StepDescription): Program {
  const { schedule: s, ranks, loading } = o;
  const program = new Program(ranks.count);
  const messages = new Messages(program, o);
  const groups = new StepGroups(program, ranks);
  const sync = new GradientSync(program, o, groups);
  const actions = new StepActions(program, o, groups, (i) => sync.cuts(i));
  const load = program.label({ kind: "load", lane: "host", action: "load" });
  for (let rank = 0; rank < ranks.count; rank++) {
    const p = ranks.stageRank[rank]!;
    sync.begin(rank);
    const seconds = loading?.(ranks.rankOf[rank]!) ?? 0;
    if (seconds > 0) program.compute(rank, program.work(seconds, load));
    for (let i = s.offsets[p]!; i < s.offsets[p + 1]!; i++) {
      const kind = s.kind[i]!;
      if (kind === kindCode.SEND_F || kind === kindCode.SEND_B) {
        program.send(messages.sent(i, rank), o.blockingSends);
      } else if (kind === kindCode.RECV_F || kind === kindCode.RECV_B) {
        program.receive(messages.received(i, rank));
      }
      // UNSHARD, RESHARD and REDUCE_GRAD have no parts: what they do follows from the plan.
      const slices = actions.slices(i);
      for (let slice = 0; slice < slices; slice++) {
        sync.before(rank, i, slice);
        actions.run(rank, i, slice);
        sync.after(rank, i, slice);
      }
    }
    sync.end(rank);
  }
  return program;
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
    const transfers = new Map<number, readonly Transfer[]>();
    for (let i = 0; i < s.kind.length; i++) {
      const up = s.kind[i] === kindCode.SEND_F;
      if (!up && s.kind[i] !== kindCode.SEND_B) continue;
      const [from, to] = [s.stageRank[s.stage[i]!]!, s.stageRank[s.stage[i]! + (up ? 1 : -1)]!];
      const way = from * s.ranks + to;
      let times = transfers.get(way);
      if (times === undefined) transfers.set(way, (times = transfersBetween(o, from, to)));
      this.#sender[i] = from;
      this.#first[i] = declare(program, o, i, to, times);
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

  /** The message that a rank receives by action `i`. */
  received(i: number, rank: number): number {
    return this.sent(i, this.#ranks.along(rank, this.#sender[i]!));
  }

  #key(i: number, step: number, up: boolean): number {
    const { stage, microbatch, microbatches } = this.#schedule;
    return 2 * ((stage[i]! + step) * microbatches + microbatch[i]!) + (up ? 0 : 1);
  }
}

function transfersBetween(o: StepDescription, from: number, to: number): Transfer[] {
  const { ranks } = o;
  const { first, rankOf } = ranks;
  const list: Transfer[] = [];
  for (let rank = first[from]!; rank < first[from + 1]!; rank++) {
    list.push(o.transfer(rankOf[rank]!, rankOf[ranks.along(rank, to)]!));
  }
  return list;
}

/** Declares the messages of a SEND for all ranks that do it; returns the first. */
function declare(
  program: Program,
  { schedule: s, ranks }: StepDescription,
  i: number,
  to: number,
  times: readonly Transfer[],
): number {
  const action = actionAt(s, i);
  const { stage, microbatch } = action;
  const up = action.kind === "SEND_F";
  const received = printAction({
    stage: stage + (up ? 1 : -1),
    kind: up ? "RECV_F" : "RECV_B",
    microbatch,
  });
  const labels = new Map<Transfer, readonly [number, number]>();
  const labelsOf = (t: Transfer): readonly [number, number] => {
    let known = labels.get(t);
    if (known === undefined) {
      const label = (kind: SpanKind, name: string, own: number, lane: Lane): number =>
        program.label({ kind, lane, action: name, stage: own, microbatch, bytes: t.bytes });
      known = [
        label("send", printAction(action), stage, t.lane),
        label("receive", received, stage + (up ? 1 : -1), t.lane),
      ];
      labels.set(t, known);
    }
    return known;
  };
  let first = -1;
  const sender = ranks.first[s.stageRank[stage]!]!;
  for (const [place, t] of times.entries()) {
    const [send, receive] = labelsOf(t);
    const { duration, latency } = t;
    const from = sender + place;
    const id = program.message({
      from,
      to: ranks.along(from, to),
      duration,
      latency,
      send,
      receive,
    });
    if (place === 0) first = id;
  }
  return first;
}

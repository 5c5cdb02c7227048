/**
 * One training step as a program: a lowered schedule with the durations of its actions, the
 * collectives inside them, and data parallelism around them (gradient-sync.ts).
 */
import { type Action, actionAt, kindCode, printAction } from "@trireme/schedulers";
import type { SpanKind } from "@trireme/timeline";
import { GradientSync } from "./gradient-sync.ts";
import { type Label, Program } from "./program.ts";
import {
  type Part,
  type StepDescription,
  type TimedCollective,
  streams,
} from "./step-description.ts";

/** The program of one step. */
export function stepProgram(o: StepDescription): Program {
  const { schedule: s, tp, dp } = o;
  const program = new Program(s.ranks * dp * tp);
  const messages = declareMessages(program, o);
  const sync = new GradientSync(program, o);
  const actions = declareActions(program, o, (i) => sync.slices(i));
  for (let rank = 0; rank < program.ranks.length; rank++) {
    const p = Math.floor(rank / (dp * tp));
    const replica = rank % (dp * tp);
    const [d, t] = [Math.floor(replica / tp), replica % tp];
    sync.begin(rank);
    for (let i = s.offsets[p]!; i < s.offsets[p + 1]!; i++) {
      const kind = s.kind[i]!;
      if (kind === kindCode.SEND_F || kind === kindCode.SEND_B) {
        program.send(messages[i]! + replica, o.blockingSends);
      } else if (kind === kindCode.RECV_F || kind === kindCode.RECV_B) {
        program.receive(messages[i]! + replica);
      }
      // UNSHARD, RESHARD and REDUCE_GRAD have no entry: what they do follows from the plan.
      const { slices, parts } = actions[i]!;
      for (let slice = 0; slice < slices; slice++) {
        sync.before(rank, i, slice);
        for (const { label, duration, tensor, data } of parts) {
          program.compute(rank, duration, label);
          for (const first of tensor) program.enter(rank, first + slice * dp + d, true);
          for (const first of data) program.enter(rank, first + slice * tp + t, true);
        }
        sync.after(rank, i, slice);
      }
    }
    sync.end(rank);
  }
  return program;
}

/** Declares the messages of each SEND, one a replica; gives the first of them for SENDs and RECVs. */
function declareMessages(program: Program, o: StepDescription): Int32Array {
  const { schedule: s, tp, dp } = o;
  const replicas = tp * dp;
  const first = new Int32Array(s.kind.length).fill(-1);
  const sends = new Map<number, number>();
  const key = (stage: number, microbatch: number, up: boolean): number =>
    2 * (stage * s.microbatches + microbatch) + (up ? 0 : 1);
  for (let i = 0; i < s.kind.length; i++) {
    const up = s.kind[i] === kindCode.SEND_F;
    if (!up && s.kind[i] !== kindCode.SEND_B) continue;
    const send = actionAt(s, i);
    const { stage, microbatch } = send;
    const to = stage + (up ? 1 : -1);
    const receive: Action = { stage: to, kind: up ? "RECV_F" : "RECV_B", microbatch };
    for (let replica = 0; replica < replicas; replica++) {
      const fromRank = s.stageRank[stage]! * replicas + replica;
      const toRank = s.stageRank[to]! * replicas + replica;
      const { duration, latency, bytes, lane } = o.transfer(fromRank, toRank);
      const label = (kind: SpanKind, action: Action): Label => {
        return { kind, lane, action: printAction(action), stage: action.stage, microbatch, bytes };
      };
      const id = program.message({
        from: fromRank,
        to: toRank,
        duration,
        latency,
        send: label("send", send),
        receive: label("receive", receive),
      });
      if (replica === 0) first[i] = id;
    }
    sends.set(key(stage, microbatch, up), first[i]!);
  }
  for (let i = 0; i < s.kind.length; i++) {
    const up = s.kind[i] === kindCode.RECV_F;
    if (!up && s.kind[i] !== kindCode.RECV_B) continue;
    first[i] = sends.get(key(s.stage[i]! + (up ? -1 : 1), s.microbatch[i]!, up))!;
  }
  return first;
}

interface DeclaredAction {
  readonly slices: number;
  readonly parts: readonly DeclaredPart[];
}

/** A part of one slice; collective of slice k and group g is `first + k × groups + g`. */
interface DeclaredPart {
  readonly label: Label;
  readonly duration: number;
  readonly tensor: readonly number[];
  readonly data: readonly number[];
}

/** The parts of each computing action of the schedule, with their collectives declared. */
function declareActions(
  program: Program,
  o: StepDescription,
  slicesOf: (i: number) => number,
): readonly DeclaredAction[] {
  const { schedule: s, tp, dp } = o;
  return Array.from(s.kind, (_, i) => {
    const action = actionAt(s, i);
    const parts = partsOf(o, action);
    if (parts.length === 0) return { slices: 0, parts: [] };
    const { stage, microbatch } = action;
    const name = printAction(action);
    const slices = slicesOf(i);
    const base = s.stageRank[stage]! * dp * tp;
    const declare = (c: TimedCollective, tensor: boolean): number => {
      const label: Label = {
        kind: c.kind,
        lane: c.lane,
        action: `${name}/${tensor ? "tp" : "dp"}`,
        stage,
        microbatch,
        bytes: c.bytes / slices,
      };
      const stream = tensor ? streams.tensor : streams.data;
      const first = program.collectives.length;
      for (let slice = 0; slice < slices; slice++) {
        for (let group = 0; group < (tensor ? dp : tp); group++) {
          const members = tensor
            ? Array.from({ length: tp }, (__, t) => base + group * tp + t)
            : Array.from({ length: dp }, (__, d) => base + d * tp + group);
          program.collective({ members, stream, duration: c.duration / slices, label });
        }
      }
      return first;
    };
    return {
      slices,
      parts: parts.map(({ kind, duration, flops, tensor, data }) => ({
        label: { kind, lane: "compute", action: name, stage, microbatch, flops: flops / slices },
        duration: duration / slices,
        tensor: tensor.map((c) => declare(c, true)),
        data: data.map((c) => declare(c, false)),
      })),
    };
  });
}

function partsOf(o: StepDescription, { stage, kind }: Action): readonly Part[] {
  const parts = o.parts[stage]!;
  return kind === "F" || kind === "B" || kind === "I" || kind === "W" ? parts[kind] : [];
}

/**
 * One step of pipelines that differ as a program (HexiScale, arXiv 2409.01143 §3): each plays its own
 * schedule; between stages the ranks put the activation together, a leader sends it, and its receiver
 * hands it out. Gradients are summed layer range by layer range and piece by piece over the pipelines, in
 * one order on all ranks: after the last action, or with overlap behind the last backward, cut at the
 * ranges.
 */
import { actionAt, kindCode, printAction } from "@trireme/schedulers";
import type { GradientSum } from "@trireme/cost-model";
import { Program } from "../program/program.ts";
import { laneOf } from "./describe-step.ts";
import { StagedDeclarations } from "./staged-declarations.ts";
import { StagedRanges } from "./staged-ranges.ts";
import type { StagedProgramOptions, StagedSchedule } from "./staged-costs.ts";
import type { TimedCollective } from "./step-description.ts";

/** The program of one step, for all ranks. */
export function stagedProgram(o: StagedProgramOptions): Program {
  const { pipelines } = o.description;
  const all = pipelines.flatMap(({ stages }) => stages.flatMap(({ devices }) => devices));
  const program = new Program(all.length);
  const ranges = new StagedRanges(program, o);
  for (const [pipeline, own] of pipelines.entries()) {
    const writer = new PipelineWriter(program, o, own, pipeline, ranges);
    for (const [stage, { devices }] of own.stages.entries()) {
      for (const rank of devices) writer.write(rank, stage);
    }
  }
  return program;
}

/** Writes the instructions of one pipeline's ranks. */
class PipelineWriter {
  readonly #program: Program;
  readonly #o: StagedProgramOptions;
  readonly #own: StagedSchedule;
  readonly #pipeline: number;
  readonly #ranges: StagedRanges;
  readonly #declared: StagedDeclarations;

  constructor(
    program: Program,
    o: StagedProgramOptions,
    own: StagedSchedule,
    pipeline: number,
    ranges: StagedRanges,
  ) {
    this.#program = program;
    this.#o = o;
    this.#own = own;
    this.#pipeline = pipeline;
    this.#ranges = ranges;
    this.#declared = new StagedDeclarations(program, o, own, pipeline);
  }

  write(rank: number, stage: number): void {
    const { schedule: s, stages } = this.#own;
    const program = this.#program;
    const { overlapDataParallel: overlap } = this.#o.plan;
    const loading = this.#o.loading(rank);
    const last = stages.length - 1;
    const { first, final } = this.#ends(stage);
    if (overlap) this.#sync(rank, "gather", this.#ranges.of(rank), false);
    if (loading > 0 && (stage === 0 || stage === last)) {
      const label = { kind: "load", lane: "host", action: "load" } as const;
      program.compute(rank, program.work(loading, program.label(label)));
    }
    for (let i = s.offsets[stage]!; i < s.offsets[stage + 1]!; i++) {
      const kind = s.kind[i]!;
      if (kind === kindCode.SEND_F || kind === kindCode.SEND_B) this.#send(rank, stage, i);
      else if (kind === kindCode.RECV_F || kind === kindCode.RECV_B) this.#receive(rank, stage, i);
      else if (overlap && i === first) this.#firstForward(rank, stage, i);
      else if (overlap && i === final) this.#lastBackward(rank, stage, i);
      else this.#run(rank, stage, i, 1, "");
    }
    const own = this.#ranges.of(rank).toReversed();
    if (overlap) for (const sum of own) this.#await(rank, "reduce", sum);
    else this.#sync(rank, "reduce", own, true);
    for (const [n, c] of this.#own.common[stage]!.entries()) {
      const action = `${stage}REDUCE_GRAD/tp`;
      program.enter(rank, this.#declared.collective(`common ${n}`, stage, { ...c, action }), true);
    }
    this.#tied(rank, stage);
    const { update } = stages[stage]!.costs;
    if (update > 0) program.compute(rank, this.#declared.update(stage, update));
    if (!overlap) this.#sync(rank, "gather", this.#ranges.of(rank), true);
  }

  /** Places of the first forward and the last backward of a stage. */
  #ends(stage: number): { readonly first: number; readonly final: number } {
    const { kind, offsets } = this.#own.schedule;
    let [first, final] = [-1, -1];
    for (let i = offsets[stage]!; i < offsets[stage + 1]!; i++) {
      if (kind[i] === kindCode.F && first < 0) first = i;
      if (kind[i] === kindCode.B) final = i;
    }
    return { first, final };
  }

  /** The first forward, each range of layers behind the weights that it needs. */
  #firstForward(rank: number, stage: number, i: number): void {
    for (const { sums, share, name } of this.#ranges.slices(rank)) {
      for (const sum of sums) this.#await(rank, "gather", sum);
      this.#run(rank, stage, i, share, name);
    }
  }

  /** The last backward, with the gradients of each range of layers summed behind the next. */
  #lastBackward(rank: number, stage: number, i: number): void {
    for (const { sums, share, name } of this.#ranges.slices(rank).toReversed()) {
      this.#run(rank, stage, i, share, name);
      this.#sync(rank, "reduce", sums.toReversed(), false);
    }
  }

  #sync(
    rank: number,
    what: "reduce" | "gather",
    sums: readonly GradientSum[],
    blocks: boolean,
  ): void {
    for (const sum of sums) {
      const id = this.#ranges.collective(what, sum);
      if (id !== undefined) this.#program.enter(rank, id, blocks);
    }
  }

  #await(rank: number, what: "reduce" | "gather", sum: GradientSum): void {
    const id = this.#ranges.collective(what, sum);
    if (id !== undefined) this.#program.await(rank, id);
  }

  /** A share of a computing action. */
  #run(rank: number, stage: number, i: number, share: number, slice: string): void {
    const action = actionAt(this.#own.schedule, i);
    if (action.kind !== "F" && action.kind !== "B") return;
    const program = this.#program;
    const name = printAction(action);
    const { microbatch } = action;
    for (const [p, part] of this.#own.parts[stage]![action.kind].entries()) {
      const key = `${i} ${p} ${slice}`;
      const each = (list: readonly TimedCollective[], what: string): number[] =>
        list.map((c, n) =>
          this.#declared.collective(`${key} ${what} ${n}`, stage, {
            ...c,
            action: `${name}/${c.axis}`,
            microbatch,
            bytes: c.bytes * share,
            duration: c.duration * share,
          }),
        );
      const hidden = each(part.hidden, "hidden");
      for (const id of hidden) program.enter(rank, id, false);
      for (const work of this.#declared.works(key, stage, name, microbatch, part, share)) {
        program.compute(rank, work);
      }
      for (const id of hidden) program.await(rank, id);
      for (const id of each(part.exposed, "exposed")) program.enter(rank, id, true);
    }
  }

  /** What the ranks of a stage put together, and its leader sends. */
  #send(rank: number, stage: number, i: number): void {
    const { schedule: s, stages } = this.#own;
    const action = actionAt(s, i);
    const up = action.kind === "SEND_F";
    const to = stage + (up ? 1 : -1);
    const { gathered, bytes } = this.#declared.boundary(Math.min(stage, to));
    const name = printAction(action);
    if (gathered > 0) {
      const id = this.#declared.collective(`gather ${name}`, stage, {
        kind: "all-gather",
        axis: "tp",
        lane: laneOf(this.#o.cluster, stages[stage]!.devices),
        action: `${name}/tp`,
        microbatch: action.microbatch,
        bytes,
        duration: gathered,
      });
      this.#program.enter(rank, id, true);
    }
    if (rank !== stages[stage]!.devices[0]) return;
    const message = this.#declared.message(stage, to, action.microbatch, up);
    this.#program.send(message, !this.#o.plan.overlapPointToPoint);
  }

  /** What a leader receives, and hands out to the ranks of its stage. */
  #receive(rank: number, stage: number, i: number): void {
    const { schedule: s, stages } = this.#own;
    const action = actionAt(s, i);
    const up = action.kind === "RECV_F";
    const from = stage + (up ? -1 : 1);
    const { devices } = stages[stage]!;
    if (rank === devices[0]) {
      this.#program.receive(this.#declared.message(from, stage, action.microbatch, up));
    }
    const { handedOut, bytes } = this.#declared.boundary(Math.min(stage, from));
    if (devices.length === 1) return;
    const name = printAction(action);
    const id = this.#declared.collective(`hand out ${name}`, stage, {
      kind: "broadcast",
      axis: "tp",
      lane: laneOf(this.#o.cluster, devices),
      action: `${name}/tp`,
      microbatch: action.microbatch,
      bytes,
      duration: handedOut,
    });
    this.#program.enter(rank, id, true);
  }

  /** The tied table's gradient, shard by shard between the ends of the pipeline. */
  #tied(rank: number, stage: number): void {
    const { tied } = this.#o.description.costs.pipelines[this.#pipeline]!;
    const { stages } = this.#own;
    const last = stages.length - 1;
    if (tied === 0 || last === 0 || (stage !== 0 && stage !== last)) return;
    const [head, tail] = [stages[0]!.devices, stages[last]!.devices];
    const shard = stages[stage]!.devices.indexOf(rank) % Math.min(head.length, tail.length);
    if (rank !== head[shard] && rank !== tail[shard]) return;
    const id = this.#declared.tied(shard, [head[shard]!, tail[shard]!], tied);
    this.#program.enter(rank, id, true);
  }
}

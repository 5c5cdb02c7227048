/**
 * Data parallelism around the actions of a step, and the update at its end. Without overlap a rank
 * reduces the gradients of its stages after its last action, updates, and gathers the weights that
 * ZeRO shards. With overlap the last backward of a stage is cut into slices, a layer each, whose
 * gradients are reduced at once while the next slice computes; and the weights are gathered from the
 * start of the step on, each slice of the first forward waiting for its own only (Li et al., PyTorch
 * Distributed, VLDB 2020, §3.2; Jiang et al., MegaScale, NSDI 2024, §3.2).
 */
import { kindCode } from "@trireme/schedulers";
import type { Program } from "./program.ts";
import { type StepDescription, type TimedCollective, streams } from "./step-description.ts";

export class GradientSync {
  readonly #program: Program;
  readonly #o: StepDescription;
  readonly #stagesOf: readonly number[][];
  /** Positions in the schedule by stage. */
  readonly #firstForward: Int32Array;
  readonly #lastBackward: Int32Array;
  /** Collectives by name, piece and group: declared by the first rank that needs them. */
  readonly #ids = new Map<string, number>();

  constructor(program: Program, o: StepDescription) {
    const { schedule: s } = o;
    this.#program = program;
    this.#o = o;
    this.#stagesOf = Array.from({ length: s.ranks }, () => []);
    s.stageRank.forEach((p, stage) => this.#stagesOf[p]!.push(stage));
    this.#firstForward = new Int32Array(s.stages).fill(-1);
    this.#lastBackward = new Int32Array(s.stages).fill(-1);
    for (let i = 0; i < s.kind.length; i++) {
      const stage = s.stage[i]!;
      const kind = s.kind[i];
      if (kind === kindCode.F && this.#firstForward[stage]! < 0) this.#firstForward[stage] = i;
      if (kind === kindCode.B || kind === kindCode.W) this.#lastBackward[stage] = i;
    }
  }

  /** Into how many slices the computing action at position `i` of the schedule is cut. */
  slices(i: number): number {
    return this.#gathers(i) || this.#reduces(i) ? this.#pieces(this.#o.schedule.stage[i]!) : 1;
  }

  /** Before the first action of a rank. */
  begin(rank: number): void {
    if (this.#o.sync.overlap) this.#gatherAll(rank, false);
  }

  /** Before a slice of the computing action at position `i`. */
  before(rank: number, i: number, slice: number): void {
    if (!this.#gathers(i)) return;
    const stage = this.#o.schedule.stage[i]!;
    this.#program.await(rank, this.#data(rank, stage, slice, this.#o.sync.gather[stage]!));
  }

  /** After it. */
  after(rank: number, i: number, slice: number): void {
    if (!this.#reduces(i)) return;
    const stage = this.#o.schedule.stage[i]!;
    this.#program.enter(rank, this.#data(rank, stage, slice, this.#o.sync.reduce[stage]!), false);
  }

  /** After the last action of a rank. */
  end(rank: number): void {
    const { sync, schedule: s } = this.#o;
    const program = this.#program;
    const p = this.#pipelineRank(rank);
    for (const stage of this.#stagesOf[p]!) {
      const reduce = sync.reduce[stage];
      if (reduce === undefined) continue;
      for (let piece = 0; piece < this.#pieces(stage); piece++) {
        const id = this.#data(rank, stage, piece, reduce);
        if (sync.overlap) program.await(rank, id);
        else program.enter(rank, id, true);
      }
    }
    for (const stage of this.#stagesOf[p]!) {
      const common = sync.common[stage];
      if (common !== undefined) program.enter(rank, this.#common(rank, stage, common), true);
    }
    if (sync.tied !== undefined && (p === s.stageRank[0] || p === s.stageRank[s.stages - 1])) {
      program.enter(rank, this.#tied(rank, sync.tied), true);
    }
    const update = { kind: "optimizer", lane: "compute", action: "optimizer" } as const;
    if (sync.optimizer[p]! > 0) program.compute(rank, sync.optimizer[p]!, update);
    if (!sync.overlap) this.#gatherAll(rank, true);
  }

  #gathers(i: number): boolean {
    const { schedule: s, sync } = this.#o;
    const stage = s.stage[i]!;
    return sync.overlap && sync.gather[stage] !== undefined && this.#firstForward[stage] === i;
  }

  #reduces(i: number): boolean {
    const { schedule: s, sync } = this.#o;
    const stage = s.stage[i]!;
    return sync.overlap && sync.reduce[stage] !== undefined && this.#lastBackward[stage] === i;
  }

  #gatherAll(rank: number, blocks: boolean): void {
    for (const stage of this.#stagesOf[this.#pipelineRank(rank)]!) {
      const gather = this.#o.sync.gather[stage];
      if (gather === undefined) continue;
      for (let piece = 0; piece < this.#pieces(stage); piece++) {
        this.#program.enter(rank, this.#data(rank, stage, piece, gather), blocks);
      }
    }
  }

  #pieces(stage: number): number {
    return this.#o.sync.overlap ? this.#o.sync.pieces[stage]! : 1;
  }

  #pipelineRank(rank: number): number {
    return Math.floor(rank / (this.#o.dp * this.#o.tp));
  }

  /** A collective over the data-parallel ranks of a stage. */
  #data(rank: number, stage: number, piece: number, c: TimedCollective): number {
    const { tp, dp } = this.#o;
    const first = this.#pipelineRank(rank) * dp * tp + (rank % tp);
    const members = Array.from({ length: dp }, (_, d) => first + d * tp);
    const action = `${stage}${c.kind === "all-gather" ? "UNSHARD" : "REDUCE_GRAD"}`;
    return this.#declare(`${action} ${piece} ${first}`, members, c, action, stage);
  }

  #common(rank: number, stage: number, c: TimedCollective): number {
    const { tp } = this.#o;
    const first = rank - (rank % tp);
    const members = Array.from({ length: tp }, (_, t) => first + t);
    const action = `${stage}REDUCE_GRAD/tp`;
    return this.#declare(`${action} ${first}`, members, c, action, stage);
  }

  #tied(rank: number, c: TimedCollective): number {
    const { schedule: s, tp, dp } = this.#o;
    const replica = rank % (tp * dp);
    const members = [s.stageRank[0]!, s.stageRank[s.stages - 1]!].map((p) => p * tp * dp + replica);
    return this.#declare(`tied ${replica}`, members, c, "REDUCE_GRAD/tied", -1);
  }

  #declare(
    key: string,
    members: readonly number[],
    c: TimedCollective,
    action: string,
    stage: number,
  ): number {
    let id = this.#ids.get(key);
    if (id === undefined) {
      id = this.#program.collective({
        members,
        stream: streams.data,
        duration: c.duration,
        label: { kind: c.kind, lane: c.lane, action, stage, bytes: c.bytes },
      });
      this.#ids.set(key, id);
    }
    return id;
  }
}

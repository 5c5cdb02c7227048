/**
 * Data parallelism around the actions of a step, and the update at its end. Without overlap a rank
 * reduces the gradients of its stages after its last action, updates, and gathers the weights that
 * ZeRO shards. With overlap the last backward of a stage is cut into slices, a layer each, whose
 * gradients are reduced at once while the next slice computes; and the weights are gathered from the
 * start of the step on, each slice of the first forward waiting for its own only (Li et al., PyTorch
 * Distributed, VLDB 2020, §3.2; Jiang et al., MegaScale, NSDI 2024, §3.2).
 */
import { kindCode } from "@trireme/schedulers";
import type { Program } from "../program/program.ts";
import type { StepGroups } from "./step-groups.ts";
import { type StepDescription, type TimedCollective, streams } from "./step-description.ts";

type Sync = "reduce" | "gather";

/** A collective of a rank, and how it lies apart for the ranks of its pipeline coordinate. */
interface Own {
  readonly id: number;
  readonly shift: number;
}

export class GradientSync {
  readonly #program: Program;
  readonly #o: StepDescription;
  readonly #groups: StepGroups;
  readonly #stagesOf: readonly number[][];
  /** Positions in the schedule by stage. */
  readonly #firstForward: Int32Array;
  readonly #lastBackward: Int32Array;
  /** First collective of (what, stage, place in the list): those of all pieces and groups follow. */
  readonly #first = new Map<string, number>();
  readonly #optimizer: readonly number[];

  constructor(program: Program, o: StepDescription, groups: StepGroups) {
    const { schedule: s, sync } = o;
    this.#program = program;
    this.#o = o;
    this.#groups = groups;
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
    const update = { kind: "optimizer", lane: sync.optimizerLane, action: "optimizer" } as const;
    const label = program.label(update);
    this.#optimizer = Array.from(sync.optimizer, (time) =>
      time > 0 ? program.work(time, label) : -1,
    );
  }

  /** Whether the computing action at position `i` of the schedule is cut into layers. */
  cuts(i: number): boolean {
    return this.#gathers(i) || this.#reduces(i);
  }

  /** Before the first action of a rank. */
  begin(rank: number): void {
    if (this.#o.sync.overlap) this.#gatherAll(rank, false);
  }

  /** Before a slice of the computing action at position `i`. */
  before(rank: number, i: number, slice: number): void {
    if (!this.#gathers(i)) return;
    for (const { id, shift } of this.#ids("gather", rank, this.#o.schedule.stage[i]!, slice)) {
      this.#program.await(rank, id, shift);
    }
  }

  /** After it. */
  after(rank: number, i: number, slice: number): void {
    if (!this.#reduces(i)) return;
    for (const { id, shift } of this.#ids("reduce", rank, this.#o.schedule.stage[i]!, slice)) {
      this.#program.enter(rank, id, false, shift);
    }
  }

  /** After the last action of a rank. */
  end(rank: number): void {
    const { sync, ranks } = this.#o;
    const program = this.#program;
    const p = ranks.stageRank[rank]!;
    for (const stage of this.#stagesOf[p]!) {
      for (let piece = 0; piece < this.#pieces(stage); piece++) {
        for (const { id, shift } of this.#ids("reduce", rank, stage, piece)) {
          if (sync.overlap) program.await(rank, id, shift);
          else program.enter(rank, id, true, shift);
        }
      }
    }
    for (const stage of this.#stagesOf[p]!) {
      for (const [place, common] of sync.common[stage]!.entries()) {
        const id = this.#declare("common", stage, place, common, 1, `${stage}REDUCE_GRAD/tp`);
        const own = id + this.#groups.local(common.axis, rank);
        program.enter(rank, own, true, this.#groups.shift(common.axis));
      }
    }
    for (const stage of this.#mirrored(p)) this.#mirror(rank, stage);
    this.#tied(rank);
    if (this.#optimizer[p]! >= 0) program.compute(rank, this.#optimizer[p]!);
    if (!sync.overlap) this.#gatherAll(rank, true);
  }

  #gathers(i: number): boolean {
    const { schedule: s, sync } = this.#o;
    const stage = s.stage[i]!;
    return sync.overlap && sync.gather[stage]!.length > 0 && this.#firstForward[stage] === i;
  }

  #reduces(i: number): boolean {
    const { schedule: s, sync } = this.#o;
    const stage = s.stage[i]!;
    return sync.overlap && sync.reduce[stage]!.length > 0 && this.#lastBackward[stage] === i;
  }

  #gatherAll(rank: number, blocks: boolean): void {
    for (const stage of this.#stagesOf[this.#o.ranks.stageRank[rank]!]!) {
      for (let piece = 0; piece < this.#pieces(stage); piece++) {
        for (const { id, shift } of this.#ids("gather", rank, stage, piece)) {
          this.#program.enter(rank, id, blocks, shift);
        }
      }
    }
  }

  #pieces(stage: number): number {
    return this.#o.sync.overlap ? this.#o.layers[stage]! : 1;
  }

  /** The collectives of one piece that a rank takes part in. */
  #ids(what: Sync, rank: number, stage: number, piece: number): Own[] {
    const action = `${stage}${what === "gather" ? "UNSHARD" : "REDUCE_GRAD"}`;
    return this.#o.sync[what][stage]!.map((c, place) => {
      const first = this.#declare(what, stage, place, c, this.#pieces(stage), action);
      const count = this.#groups.count(c.axis, this.#o.schedule.stageRank[stage]!);
      const id = first + piece * count + this.#groups.local(c.axis, rank);
      return { id, shift: this.#groups.shift(c.axis) };
    });
  }

  /** Declares a collective for all pieces and all groups of its stage, once; returns the first. */
  #declare(
    what: string,
    stage: number,
    place: number,
    c: TimedCollective,
    pieces: number,
    action: string,
  ): number {
    const key = `${what} ${stage} ${place}`;
    let first = this.#first.get(key);
    if (first === undefined) {
      const label = this.#program.label({ ...c, action, stage });
      const stream = streams[c.axis];
      const p = this.#o.schedule.stageRank[stage]!;
      const { duration } = c;
      for (let piece = 0; piece < pieces; piece++) {
        const groups = this.#groups.of(c.axis, p);
        const row = this.#program.collectiveRow({ groups, stream, duration, label });
        first ??= row;
      }
      this.#first.set(key, first!);
    }
    return first!;
  }

  /** Stages of the first direction whose other copy or self is on pipeline rank `p`, in their order. */
  #mirrored(p: number): number[] {
    const { schedule: s, sync } = this.#o;
    if (s.directions === 1) return [];
    const half = s.stages / 2;
    const all = Array.from({ length: half }, (_, stage) => stage);
    return all.filter(
      (stage) =>
        sync.mirror[stage] !== undefined &&
        (s.stageRank[stage] === p || s.stageRank[stage + half] === p),
    );
  }

  #mirror(rank: number, stage: number): void {
    const { schedule: s, sync } = this.#o;
    const ends = [s.stageRank[stage]!, s.stageRank[stage + s.stages / 2]!] as const;
    this.#between(rank, ends, `mirror ${stage}`, {
      ...sync.mirror[stage]!,
      action: `${stage}REDUCE_GRAD/mirror`,
      stage,
    });
  }

  #tied(rank: number): void {
    const { schedule: s, sync } = this.#o;
    if (sync.tied === undefined) return;
    const ends = [s.stageRank[0]!, s.stageRank[s.stages / s.directions - 1]!] as const;
    this.#between(rank, ends, "tied", { ...sync.tied, action: "REDUCE_GRAD/tied", stage: -1 });
  }

  /** A collective between the ranks of one pipeline at two places of it. */
  #between(
    rank: number,
    ends: readonly [number, number],
    what: string,
    c: Omit<TimedCollective, "axis"> & { readonly action: string; readonly stage: number },
  ): void {
    const { ranks } = this.#o;
    if (ends[0] === ends[1] || !ends.includes(ranks.stageRank[rank]!)) return;
    const [head, tail] = ends;
    let first = this.#first.get(what);
    if (first === undefined) {
      const groups: number[] = [];
      for (let one = ranks.first[head]!; one < ranks.first[head + 1]!; one++) {
        groups.push(this.#program.group([one, ranks.along(one, tail)]));
      }
      const { duration, ...named } = c;
      const label = this.#program.label(named);
      first = this.#program.collectiveRow({ groups, stream: streams.dp, duration, label });
      this.#first.set(what, first);
    }
    const own = first + ranks.along(rank, head) - ranks.first[head]!;
    this.#program.enter(rank, own, true, this.#groups.shiftAlong(head));
  }
}

/**
 * The computing actions of a schedule in a program. An action is one slice, or one for each layer of
 * its stage: where data parallelism runs behind it, and where experts are uneven, so that every layer
 * waits for the slowest. In a slice each part starts what it hides, computes, waits for what it hid,
 * and then for what it does not hide.
 */
import { type Action, actionAt, printAction } from "@trireme/schedulers";
import type { Seconds } from "@trireme/core";
import type { Program } from "../program/program.ts";
import type { StepGroups } from "./step-groups.ts";
import {
  type Part,
  type StepDescription,
  type TimedCollective,
  streams,
} from "./step-description.ts";

interface DeclaredCollective {
  readonly timed: TimedCollective;
  /** Collective of slice k and the rank's g-th group is `first + k × groups + g`. */
  readonly first: number;
  readonly groups: number;
  /** How it lies apart for the ranks of a pipeline coordinate. */
  readonly shift: number;
}

interface DeclaredPart {
  readonly part: Part;
  readonly label: number;
  /** Works of all ranks by slice, at the grain of operators several; empty where they vary by rank. */
  readonly works: readonly (readonly number[])[];
  readonly hidden: readonly DeclaredCollective[];
  readonly exposed: readonly DeclaredCollective[];
}

interface DeclaredAction {
  readonly slices: number;
  readonly parts: readonly DeclaredPart[];
}

const none: DeclaredAction = { slices: 0, parts: [] };

export class StepActions {
  readonly #program: Program;
  readonly #o: StepDescription;
  readonly #groups: StepGroups;
  readonly #actions: readonly DeclaredAction[];
  /** Works by label and duration, where they vary: equal ones are declared once. */
  readonly #varied = new Map<string, number>();
  readonly #kernelLabels = new Map<string, number>();
  /** Whether what is computed is the same for all ranks of a pipeline coordinate. */
  readonly alike: boolean;

  constructor(
    program: Program,
    o: StepDescription,
    groups: StepGroups,
    cuts: (i: number) => boolean,
  ) {
    this.#program = program;
    this.#o = o;
    this.#groups = groups;
    const { schedule: s } = o;
    const layered = o.variation?.experts !== undefined || o.variation?.exchange !== undefined;
    this.#actions = Array.from(s.kind, (_, i) => {
      const action = actionAt(s, i);
      const { kind, stage } = action;
      if (kind !== "F" && kind !== "B" && kind !== "I" && kind !== "W") return none;
      const slices = layered || cuts(i) ? o.layers[stage]! : 1;
      const parts = o.parts[stage]![kind].map((part) => this.#declare(action, part, slices));
      return { slices, parts };
    });
    this.alike = this.#actions.every(({ parts }) => parts.every(({ works }) => works.length > 0));
  }

  /** Into how many slices the action at position `i` of the schedule is cut; 0: nothing is computed. */
  slices(i: number): number {
    return this.#actions[i]!.slices;
  }

  /** Appends one slice to a rank's instructions. */
  run(rank: number, i: number, slice: number): void {
    const program = this.#program;
    const { slices, parts } = this.#actions[i]!;
    for (const declared of parts) {
      const { works, hidden, exposed } = declared;
      for (const c of hidden) program.enter(rank, this.#own(c, rank, slice), false, c.shift);
      if (works.length > 0) for (const work of works[slice]!) program.compute(rank, work);
      else program.compute(rank, this.#variedWork(declared, rank, i, slice, slices));
      for (const c of hidden) program.await(rank, this.#own(c, rank, slice), c.shift);
      for (const c of exposed) program.enter(rank, this.#own(c, rank, slice), true, c.shift);
    }
  }

  #own({ timed, first, groups }: DeclaredCollective, rank: number, slice: number): number {
    return first + slice * groups + this.#groups.local(timed.axis, rank);
  }

  #declare(action: Action, part: Part, slices: number): DeclaredPart {
    const { stage, microbatch } = action;
    const name = printAction(action);
    const { kind, duration, hidden, exposed } = part;
    const flops = part.flops / slices;
    const label = this.#program.label({
      kind,
      lane: "compute",
      action: name,
      stage,
      microbatch,
      flops,
    });
    const declare = (timed: TimedCollective): DeclaredCollective =>
      this.#collective(action, name, timed, slices);
    return {
      part,
      label,
      works: this.#varies(part) ? [] : this.#works(action, part, label, duration, slices),
      hidden: hidden.map(declare),
      exposed: exposed.map(declare),
    };
  }

  #varies(part: Part): boolean {
    const { variation } = this.#o;
    return (
      (variation?.attention !== undefined && part.attention > 0) ||
      (variation?.experts !== undefined && part.experts > 0)
    );
  }

  #works(
    { stage, microbatch }: Action,
    part: Part,
    label: number,
    duration: Seconds,
    slices: number,
  ): number[][] {
    const program = this.#program;
    const { kernels } = part;
    if (kernels === undefined || kernels.length === 0 || slices > 1) {
      const work = program.work(duration / slices, label);
      return Array.from({ length: slices }, () => [work]);
    }
    const { kind } = part;
    const list = kernels.map((k) => {
      const key = `${stage} ${microbatch} ${kind} ${k.name} ${k.flops}`;
      let own = this.#kernelLabels.get(key);
      if (own === undefined) {
        const { name: action, flops } = k;
        own = program.label({ kind, lane: "compute", action, stage, microbatch, flops });
        this.#kernelLabels.set(key, own);
      }
      return program.work(k.duration, own);
    });
    return [list];
  }

  #collective(
    { stage, microbatch }: Action,
    action: string,
    timed: TimedCollective,
    slices: number,
  ): DeclaredCollective {
    const program = this.#program;
    const { schedule: s, ranks, variation } = this.#o;
    const { kind, axis, lane } = timed;
    const p = s.stageRank[stage]!;
    const bytes = timed.bytes / slices;
    const label = program.label({
      kind,
      lane,
      action: `${action}/${axis}`,
      stage,
      microbatch,
      bytes,
    });
    const groups = this.#groups.of(axis, p);
    const { first: at, members } = ranks.groups[axis];
    let first = -1;
    const stream = streams[axis];
    for (let slice = 0; slice < slices; slice++) {
      const duration = timed.duration / slices;
      let row: number;
      if (axis === "ep" && variation?.exchange !== undefined) {
        row = -1;
        for (const [g, group] of groups.entries()) {
          const one = ranks.rankOf[members[at[p]! + g]![0]!]!;
          const own =
            duration * variation.exchange(one, this.#modelStage(stage), slice, microbatch);
          const id = program.collective({ group, stream, duration: own, label });
          if (row < 0) row = id;
        }
      } else row = program.collectiveRow({ groups, stream, duration, label });
      if (first < 0) first = row;
    }
    return { timed, first, groups: groups.length, shift: this.#groups.shift(axis) };
  }

  #variedWork(
    { part, label }: DeclaredPart,
    rank: number,
    i: number,
    slice: number,
    slices: number,
  ): number {
    const { schedule: s, ranks, variation } = this.#o;
    const real = ranks.rankOf[rank]!;
    const microbatch = s.microbatch[i]!;
    const { attention, experts } = part;
    let duration = part.duration;
    if (attention > 0 && variation?.attention !== undefined) {
      duration += attention * (variation.attention(real, microbatch) - 1);
    }
    if (experts > 0 && variation?.experts !== undefined) {
      const stage = this.#modelStage(s.stage[i]!);
      duration += experts * (variation.experts(real, stage, slice, microbatch) - 1);
    }
    const key = `${label} ${duration}`;
    let work = this.#varied.get(key);
    if (work === undefined) {
      work = this.#program.work(Math.max(0, duration) / slices, label);
      this.#varied.set(key, work);
    }
    return work;
  }

  /** In a bidirectional pipeline both directions' stages carry the model's. */
  #modelStage(stage: number): number {
    const { stages, directions } = this.#o.schedule;
    return stage % (stages / directions);
  }
}

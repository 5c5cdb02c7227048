/**
 * The process groups of a step in its program, declared when first used, and how the numbers that the
 * ranks of one pipeline coordinate name lie apart: those of its own group of an axis, or of its pipeline.
 */
import type { Program } from "../program/program.ts";
import type { SimulatedRanks } from "./fold.ts";
import type { GroupAxis } from "./rank-layout.ts";

export class StepGroups {
  readonly #program: Program;
  readonly #ranks: SimulatedRanks;
  readonly #declared = new Map<string, readonly number[]>();
  readonly #shifts = new Map<GroupAxis | number, number>();

  constructor(program: Program, ranks: SimulatedRanks) {
    this.#program = program;
    this.#ranks = ranks;
  }

  /** The program's groups along an axis at pipeline rank `p`. */
  of(axis: GroupAxis, p: number): readonly number[] {
    const key = `${axis} ${p}`;
    let list = this.#declared.get(key);
    if (list === undefined) {
      const { first, members } = this.#ranks.groups[axis];
      list = members.slice(first[p], first[p + 1]).map((group) => this.#program.group(group));
      this.#declared.set(key, list);
    }
    return list;
  }

  /** How many groups of the axis pipeline rank `p` has. */
  count(axis: GroupAxis, p: number): number {
    const { first } = this.#ranks.groups[axis];
    return first[p + 1]! - first[p]!;
  }

  /** Place of a rank's group in `of`. */
  local(axis: GroupAxis, rank: number): number {
    const { of, first } = this.#ranks.groups[axis];
    return of[rank]! - first[this.#ranks.stageRank[rank]!]!;
  }

  /** The program's shift by `local`. */
  shift(axis: GroupAxis): number {
    return this.#shift(axis, (rank) => this.local(axis, rank));
  }

  /** The program's shift by the rank with pipeline coordinate `p` in a rank's pipeline. */
  shiftAlong(p: number): number {
    return this.#shift(p, (rank) => this.#ranks.along(rank, p));
  }

  #shift(key: GroupAxis | number, move: (rank: number) => number): number {
    let shift = this.#shifts.get(key);
    if (shift === undefined) {
      const { count } = this.#ranks;
      shift = this.#program.shift(Int32Array.from({ length: count }, (_, rank) => move(rank)));
      this.#shifts.set(key, shift);
    }
    return shift;
  }
}

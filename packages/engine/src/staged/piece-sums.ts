/**
 * Which ranks add up which parts of which gradients where pipelines differ (HexiScale, arXiv
 * 2409.01143, section 3): a tensor is cut to the smallest parts that ranks hold of it, and each part is
 * summed by those that hold it, one of every pipeline, or two where a tied table is there twice.
 * A rank of a narrow stage holds several parts, and sums them with several groups.
 */
import type { Model, Plan } from "@trireme/workload";
import { stages } from "@trireme/workload";
import { stageParameters } from "../parameters/parameter-specs.ts";
import { alone } from "../parameters/spec-parts.ts";
import type { ParameterSpec } from "../parameters/parameter.ts";
import type { Range } from "../memory/slice.ts";
import { elements } from "../memory/tensor.ts";

/** Elements that lie together in a rank's part of a tensor. */
export interface PieceRun {
  readonly start: number;
  readonly length: number;
}

/** One group's sum: the same elements in the same order on all of its members. */
export interface PieceSum {
  /** World ranks, in the order of the sum. */
  readonly members: readonly number[];
  /** What this rank has of it, by tensor. */
  readonly tensors: readonly { readonly name: string; readonly runs: readonly PieceRun[] }[];
}

/** A tensor on the ranks of one stage, in order of shard. */
interface Copy {
  readonly ranks: readonly number[];
  readonly specs: readonly ParameterSpec[];
}

/** The sums that a rank takes part in, in the same order on all ranks. */
export function pieceSums(model: Model, plan: Plan, rank: number): readonly PieceSum[] {
  const sums = new Map<
    string,
    { members: readonly number[]; tensors: PieceSum["tensors"][number][] }
  >();
  for (const [name, copies] of copiesOf(model, plan)) {
    if (!copies.some(({ ranks }) => ranks.includes(rank))) continue;
    for (const { members, runs } of tensorSums(copies, rank)) {
      const key = members.join();
      const sum = sums.get(key) ?? { members, tensors: [] };
      sums.set(key, sum);
      sum.tensors.push({ name, runs });
    }
  }
  return [...sums.values()];
}

/** How many different groups all ranks of a plan sum in. */
export function pieceGroupCount(model: Model, plan: Plan): number {
  const groups = new Set<string>();
  for (const copies of copiesOf(model, plan).values()) {
    for (const rank of copies.flatMap(({ ranks }) => ranks)) {
      for (const { members } of tensorSums(copies, rank)) groups.add(members.join());
    }
  }
  return groups.size;
}

/** By name of each trained tensor, in the order of the names: where it is held. */
function copiesOf(model: Model, plan: Plan): ReadonlyMap<string, readonly Copy[]> {
  const copies = new Map<string, { ranks: number[]; specs: ParameterSpec[] }[]>();
  let next = 0;
  for (let pipeline = 0; pipeline < plan.dp; pipeline++) {
    for (const stage of stages(model, plan, pipeline)) {
      const width = stage.tp ?? plan.tp;
      const here = new Map<string, { ranks: number[]; specs: ParameterSpec[] }>();
      for (let shard = 0; shard < width; shard++, next++) {
        const tensor = { rank: shard, ranks: width };
        for (const spec of stageParameters(model, stage, {
          tensor,
          expert: alone,
          expertSplit: alone,
        })) {
          if (spec.frozen === true || spec.role === "state") continue;
          const copy = here.get(spec.name) ?? { ranks: [], specs: [] };
          here.set(spec.name, copy);
          copy.ranks.push(next);
          copy.specs.push(spec);
        }
      }
      for (const [name, copy] of here) {
        const all = copies.get(name);
        if (all === undefined) copies.set(name, [copy]);
        else all.push(copy);
      }
    }
  }
  return new Map([...copies].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** The sums of one tensor that a rank is in. */
function tensorSums(
  copies: readonly Copy[],
  rank: number,
): { members: readonly number[]; runs: readonly PieceRun[] }[] {
  const first = copies.flatMap(({ specs }) => specs).find(({ slice }) => slice !== undefined);
  if (first?.slice === undefined) return wholeSums(copies, rank);
  const { dims } = first;
  const { dim } = first.slice;
  const rangesOf = ({ slice }: ParameterSpec): readonly Range[] =>
    slice?.ranges ?? [{ start: 0, count: dims[dim]! }];
  const held = copies.flatMap(({ ranks, specs }) =>
    specs.map((spec, shard) => ({ rank: ranks[shard]!, ranges: rangesOf(spec) })),
  );
  const cuts = [
    ...new Set(held.flatMap(({ ranges }) => ranges.flatMap((r) => [r.start, r.start + r.count]))),
  ].toSorted((a, b) => a - b);
  const own = held.find((h) => h.rank === rank)!.ranges;
  const sums = new Map<string, { members: readonly number[]; ranges: Range[] }>();
  for (const [i, start] of cuts.slice(0, -1).entries()) {
    const count = cuts[i + 1]! - start;
    const members = held.filter(({ ranges }) => placeIn(ranges, start) >= 0).map((h) => h.rank);
    if (!members.includes(rank)) continue;
    const sum = sums.get(members.join()) ?? { members, ranges: [] };
    sums.set(members.join(), sum);
    sum.ranges.push({ start: placeIn(own, start), count });
  }
  const [outer, inner] = [elements(dims.slice(0, dim)), elements(dims.slice(dim + 1))];
  const stride = own.reduce((sum, { count }) => sum + count, 0) * inner;
  return [...sums.values()].map(({ members, ranges }) => ({
    members,
    runs: Array.from({ length: outer }, (_, o) =>
      ranges.map(({ start, count }) => ({
        start: o * stride + start * inner,
        length: count * inner,
      })),
    ).flat(),
  }));
}

/**
 * Of a tensor that every rank of a stage holds alike: one sum for each rank of the widest stage, in
 * which ranks of narrower ones stand for several.
 */
function wholeSums(
  copies: readonly Copy[],
  rank: number,
): { members: readonly number[]; runs: readonly PieceRun[] }[] {
  const widest = copies.reduce((most, { ranks }) => Math.max(most, ranks.length), 0);
  const length = elements(copies[0]!.specs[0]!.dims);
  return Array.from({ length: widest }, (_, lane) =>
    copies.map(({ ranks }) => ranks[Math.floor((lane * ranks.length) / widest)]!),
  )
    .filter((members) => members.includes(rank))
    .map((members) => ({ members, runs: [{ start: 0, length }] }));
}

/** Where an index lies in a rank's part along a dim; −1 outside of it. */
function placeIn(ranges: readonly Range[], index: number): number {
  let before = 0;
  for (const { start, count } of ranges) {
    if (index >= start && index < start + count) return before + index - start;
    before += count;
  }
  return -1;
}

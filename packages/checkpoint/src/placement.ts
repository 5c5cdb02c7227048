/**
 * Which rank of a layout holds what of which tensor. A holding is a local tensor of one data-parallel
 * group, or the flat range of it that ZeRO leaves one member; its pieces say which boxes of the global
 * tensor that is. Over all holdings the main pieces cover each tensor exactly once.
 */
import { TriremeError } from "@trireme/core";
import { type GlobalTensor, checkTensors, isSplitByZero } from "./global-tensor.ts";
import {
  type ParallelLayout,
  type RankGroup,
  denseGroup,
  expertGroup,
  layerStages,
  layoutRanks,
} from "./parallel-layout.ts";
import { type Region, elements, flatRegions, intersectRegions } from "./region.ts";
import { type LocalTensor, type SplitCoordinate, splitTensor } from "./tensor-split.ts";

/** A box of a global tensor, and where it starts in the local tensor. */
export interface HeldPiece {
  readonly region: Region;
  readonly local: readonly number[];
  /** Whether a checkpoint takes it from here; elsewhere it is a replica. */
  readonly main: boolean;
}

/** What one rank, or each rank of a data-parallel group, holds of a tensor. */
export interface Holding {
  /** The tensor's place in the list given. */
  readonly tensor: number;
  readonly group: RankGroup;
  /** The member that holds it, by its place in the group; undefined where each does. */
  readonly member: number | undefined;
  /** Shape of the whole local tensor; what is held are its elements [from, to) in row-major order. */
  readonly shape: readonly number[];
  readonly from: number;
  readonly to: number;
  readonly pieces: readonly HeldPiece[];
}

/**
 * Every holding of a layout, or those of one rank, by stage, then coordinate, then tensor. Throws
 * `LAYOUT` where the tensors do not fit the layout.
 */
export function placeTensors(
  tensors: readonly GlobalTensor[],
  layout: ParallelLayout,
  rank?: number,
): readonly Holding[] {
  checkTensors(tensors, layout.layers);
  if (
    rank !== undefined &&
    !(Number.isSafeInteger(rank) && rank >= 0 && rank < layoutRanks(layout))
  )
    throw new TriremeError("LAYOUT", `rank ${rank} is none of 0..${layoutRanks(layout) - 1}`);
  const holdings: Holding[] = [];
  for (const [stage, indices] of stageTensors(tensors, layout).entries()) {
    const pipeline = layout.stageRank[stage]!;
    for (const { group, coordinate, dense } of groupsOf(layout, pipeline)) {
      const member = rank === undefined ? undefined : memberOf(group, rank);
      if (rank !== undefined && member === undefined) continue;
      const chunk = new Chunk(layout, group, member);
      for (const tensor of indices) {
        const global = tensors[tensor]!;
        if ((global.experts === undefined) !== dense) continue;
        const main = isMainStage(global, tensor, stage, layout);
        const local = splitTensor(global, coordinate, tensor);
        if (local !== undefined) chunk.add(tensor, global, local, main);
      }
      for (const holding of chunk.holdings()) holdings.push(holding);
    }
  }
  return holdings;
}

/** Ranks of a holding. */
export function holders({ group, member }: Holding): readonly number[] {
  if (member !== undefined) return [group.first + group.stride * member];
  return Array.from({ length: group.count }, (_, i) => group.first + group.stride * i);
}

/** The numbers of the tensors of each stage, in the order given. */
function stageTensors(
  tensors: readonly GlobalTensor[],
  layout: ParallelLayout,
): readonly (readonly number[])[] {
  const ofLayer = layerStages(layout);
  const stages = layout.stageRank.map((): number[] => []);
  const last = stages.length - 1;
  for (const [index, { place }] of tensors.entries()) {
    if (typeof place === "number") stages[ofLayer[place]!]!.push(index);
    else if (place === "first") stages[0]!.push(index);
    else if (place === "last") stages[last]!.push(index);
    else if (place === "ends") {
      stages[0]!.push(index);
      // A rank that has both ends has the tensor once.
      if (layout.stageRank[0] !== layout.stageRank[last]) stages[last]!.push(index);
    } else {
      for (let rank = 0; rank < layout.pp; rank++) {
        stages[layout.stageRank.indexOf(rank)]!.push(index);
      }
    }
  }
  return stages;
}

function isMainStage(
  { place }: GlobalTensor,
  index: number,
  stage: number,
  { pp, stageRank }: ParallelLayout,
): boolean {
  if (place === "ends") return stage === 0;
  return place !== "every" || stageRank[stage] === index % pp;
}

interface Coordinated {
  readonly group: RankGroup;
  readonly coordinate: SplitCoordinate;
  readonly dense: boolean;
}

function* groupsOf(layout: ParallelLayout, pipeline: number): Generator<Coordinated> {
  const { tp, ep, expertTp } = layout;
  for (let tensor = 0; tensor < tp; tensor++) {
    const coordinate = { tensor, tp, expert: 0, ep: 1 };
    yield { group: denseGroup(layout, pipeline, tensor), coordinate, dense: true };
  }
  for (let expert = 0; expert < ep; expert++) {
    for (let tensor = 0; tensor < expertTp; tensor++) {
      const coordinate = { tensor, tp: expertTp, expert, ep };
      const group = expertGroup(layout, pipeline, tensor, expert);
      yield { group, coordinate, dense: false };
    }
  }
}

function memberOf({ first, stride, count }: RankGroup, rank: number): number | undefined {
  const member = (rank - first) / stride;
  return Number.isInteger(member) && member >= 0 && member < count ? member : undefined;
}

interface Added {
  readonly tensor: number;
  readonly local: LocalTensor;
  readonly mainStage: boolean;
  /** The buffer of its state and element type that ZeRO cuts, and where in it the tensor starts; undefined uncut. */
  readonly buffer: { length: number } | undefined;
  readonly offset: number;
}

/** The tensors of one stage and one coordinate: a ZeRO buffer for each state and dtype. */
class Chunk {
  readonly #layout: ParallelLayout;
  readonly #group: RankGroup;
  readonly #only: number | undefined;
  readonly #added: Added[] = [];
  readonly #buffers = new Map<string, { length: number }>();

  constructor(layout: ParallelLayout, group: RankGroup, only: number | undefined) {
    this.#layout = layout;
    this.#group = group;
    this.#only = only;
  }

  add(tensor: number, global: GlobalTensor, local: LocalTensor, mainStage: boolean): void {
    if (!isSplitByZero(global, this.#layout.zero)) {
      this.#added.push({ tensor, local, mainStage, buffer: undefined, offset: 0 });
      return;
    }
    const key = `${global.dtype} ${global.state ?? "weight"}`;
    const buffer = this.#buffers.get(key) ?? { length: 0 };
    this.#buffers.set(key, buffer);
    this.#added.push({ tensor, local, mainStage, buffer, offset: buffer.length });
    buffer.length += elements(local.shape);
  }

  *holdings(): Generator<Holding> {
    for (const added of this.#added) {
      const count = elements(added.local.shape);
      if (added.buffer === undefined) {
        yield this.#holding(added, undefined, 0, count);
        continue;
      }
      for (const [member, from, to] of this.#cuts(added, added.buffer.length, count)) {
        if (this.#only === undefined || this.#only === member)
          yield this.#holding(added, member, from, to);
      }
    }
  }

  /** Which member has which of the local elements. */
  *#cuts(
    { local, offset }: Added,
    length: number,
    count: number,
  ): Generator<readonly [member: number, from: number, to: number]> {
    if (count === 0) return;
    const members = this.#group.count;
    if (this.#layout.partition === "tensor") {
      const rows = local.shape[0] ?? 1;
      const share = Math.ceil(rows / members) * (count / rows);
      for (let member = 0; member * share < count; member++) {
        yield [member, member * share, Math.min(count, (member + 1) * share)];
      }
      return;
    }
    const share = Math.ceil(length / members);
    for (let member = Math.floor(offset / share); member * share < offset + count; member++) {
      const from = Math.max(0, member * share - offset);
      yield [member, from, Math.min(count, (member + 1) * share - offset)];
    }
  }

  #holding(
    { tensor, local, mainStage }: Added,
    member: number | undefined,
    from: number,
    to: number,
  ): Holding {
    const whole = from === 0 && to === elements(local.shape);
    const ranges = whole ? undefined : flatRegions(local.shape, from, to);
    const pieces: HeldPiece[] = [];
    for (const { region, local: start, main } of local.parts) {
      if (elements(region.shape) === 0) continue;
      const piece = (at: readonly number[], shape: readonly number[]): HeldPiece => ({
        region: { start: at.map((x, dim) => x - start[dim]! + region.start[dim]!), shape },
        local: at,
        main: main && mainStage,
      });
      if (ranges === undefined) {
        pieces.push(piece(start, region.shape));
        continue;
      }
      const part = { start, shape: region.shape };
      for (const range of ranges) {
        const shared = intersectRegions(range, part);
        if (shared !== undefined) pieces.push(piece(shared.start, shared.shape));
      }
    }
    return { tensor, group: this.#group, member, shape: local.shape, from, to, pieces };
  }
}

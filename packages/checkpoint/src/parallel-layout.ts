/**
 * How a training run lays tensors over ranks: tensor, context, data, expert and pipeline parallelism,
 * virtual and uneven stages, ZeRO. Ranks count with tp fastest, then cp, then dp, then pp. The ranks
 * of one pipeline rank are laid out a second time for experts, as (expert tp, ep, rest), tp fastest:
 * Megatron's folding, in which expert parallelism needs ranks of its own no more than ZeRO does.
 */
import { TriremeError } from "@trireme/core";

/** The layout of a run; make it with `defineLayout`. */
export interface ParallelLayout {
  readonly tp: number;
  readonly pp: number;
  /** Chunks of the model on each pipeline rank. */
  readonly vpp: number;
  readonly dp: number;
  readonly cp: number;
  readonly ep: number;
  /** Tensor parallelism inside an expert. */
  readonly expertTp: number;
  /** From 1 on optimizer state is split over the data-parallel group, at 3 weights are too. */
  readonly zero: 0 | 1 | 2 | 3;
  /**
   * How ZeRO cuts: "buffer" joins a chunk's tensors of one state and element type end to end and cuts
   * that into equal shares (Megatron, DeepSpeed); "tensor" cuts each tensor's rows (FSDP2), the first shares rounded up.
   */
  readonly partition: "buffer" | "tensor";
  readonly layers: number;
  /** Layers of each stage, of which there are pp × vpp. */
  readonly stageLayers: readonly number[];
  /** The pipeline rank of each stage. */
  readonly stageRank: readonly number[];
}

/** What `defineLayout` takes: degrees default to 1. */
export interface LayoutOptions {
  readonly layers: number;
  readonly tp?: number;
  readonly pp?: number;
  readonly vpp?: number;
  readonly dp?: number;
  readonly cp?: number;
  readonly ep?: number;
  /** Default: tp, or 1 where tp does not fit beside ep. */
  readonly expertTp?: number;
  readonly zero?: 0 | 1 | 2 | 3;
  /** Default "buffer". */
  readonly partition?: "buffer" | "tensor";
  /** Default: the same for each stage, which must divide the layers. */
  readonly stageLayers?: readonly number[];
  /** Default: stage s on pipeline rank s mod pp. */
  readonly stageRank?: readonly number[];
}

/** The ranks first, first + stride, … : a data-parallel group. */
export interface RankGroup {
  readonly first: number;
  readonly stride: number;
  readonly count: number;
}

/** A layout with its defaults filled in. Throws `LAYOUT` with the numbers and the rule they break. */
export function defineLayout(options: LayoutOptions): ParallelLayout {
  const { layers, tp = 1, pp = 1, vpp = 1, dp = 1, cp = 1, ep = 1 } = options;
  const { zero = 0, partition = "buffer" } = options;
  const degrees = Object.entries({ tp, pp, vpp, dp, cp, ep });
  for (const [name, value] of degrees) {
    if (!Number.isSafeInteger(value) || value < 1) {
      throw refuse(`${name} ${value}: a degree is an integer of at least 1`);
    }
  }
  if (!Number.isSafeInteger(layers) || layers < 0) {
    throw refuse(`layers ${layers}: it is an integer of at least 0`);
  }
  if (![0, 1, 2, 3].includes(zero)) throw refuse(`zero ${zero}: it is 0, 1, 2 or 3`);
  if (!["buffer", "tensor"].includes(partition)) {
    throw refuse(`partition "${partition}": it is "buffer" or "tensor"`);
  }
  const perStage = tp * cp * dp;
  if (!Number.isSafeInteger(perStage * pp) || perStage * pp > 2 ** 31 - 1) {
    throw refuse(`tp(${tp}) x cp(${cp}) x dp(${dp}) x pp(${pp}) ranks are more than 2^31-1`);
  }
  const expertTp = options.expertTp ?? (perStage % (tp * ep) === 0 ? tp : 1);
  if (!Number.isSafeInteger(expertTp) || expertTp < 1 || perStage % (expertTp * ep) !== 0) {
    throw refuse(
      `expertTp(${expertTp}) x ep(${ep}) does not divide the ${perStage} ranks of a pipeline rank, tp(${tp}) x cp(${cp}) x dp(${dp})`,
    );
  }
  const stageLayers = options.stageLayers ?? evenStages(layers, pp * vpp);
  const stageRank = options.stageRank ?? stageLayers.map((_, stage) => stage % pp);
  checkStages({ layers, pp, vpp, stageLayers, stageRank });
  return {
    tp,
    pp,
    vpp,
    dp,
    cp,
    ep,
    expertTp,
    zero,
    partition,
    layers,
    stageLayers: [...stageLayers],
    stageRank: [...stageRank],
  };
}

/** Ranks of a layout. */
export function layoutRanks({ tp, cp, dp, pp }: ParallelLayout): number {
  return tp * cp * dp * pp;
}

/** The stage of each layer. */
export function layerStages({ stageLayers }: ParallelLayout): readonly number[] {
  return stageLayers.flatMap((count, stage) => new Array<number>(count).fill(stage));
}

/** The data-parallel group that shares dense weights: the ranks over cp and dp. */
export function denseGroup(layout: ParallelLayout, pipeline: number, tensor: number): RankGroup {
  const { tp, cp, dp } = layout;
  return { first: pipeline * tp * cp * dp + tensor, stride: tp, count: cp * dp };
}

/** The data-parallel group that shares an expert's weights. */
export function expertGroup(
  layout: ParallelLayout,
  pipeline: number,
  tensor: number,
  expert: number,
): RankGroup {
  const { tp, cp, dp, ep, expertTp } = layout;
  const perStage = tp * cp * dp;
  return {
    first: pipeline * perStage + tensor + expertTp * expert,
    stride: expertTp * ep,
    count: perStage / (expertTp * ep),
  };
}

function evenStages(layers: number, stages: number): readonly number[] {
  if (layers % stages === 0) return new Array<number>(stages).fill(layers / stages);
  const near = Math.max(1, Math.floor(layers / stages)) * stages;
  throw refuse(
    `${layers} layers do not divide into ${stages} stages; give stageLayers, or ${near} layers`,
  );
}

function checkStages(o: {
  readonly layers: number;
  readonly pp: number;
  readonly vpp: number;
  readonly stageLayers: readonly number[];
  readonly stageRank: readonly number[];
}): void {
  const stages = o.pp * o.vpp;
  if (o.stageLayers.length !== stages) {
    throw refuse(
      `stageLayers has ${o.stageLayers.length} stages; pp(${o.pp}) x vpp(${o.vpp}) is ${stages}`,
    );
  }
  const bad = o.stageLayers.find((count) => !Number.isSafeInteger(count) || count < 0);
  if (bad !== undefined) throw refuse(`stageLayers has ${bad}; it takes integers of at least 0`);
  const sum = o.stageLayers.reduce((a, b) => a + b, 0);
  if (sum !== o.layers)
    throw refuse(`stageLayers has ${sum} layers together; the model ${o.layers}`);
  if (o.stageRank.length !== stages) {
    throw refuse(`stageRank has ${o.stageRank.length} stages; pp x vpp is ${stages}`);
  }
  for (let rank = 0; rank < o.pp; rank++) {
    const chunks = o.stageRank.filter((other) => other === rank).length;
    if (chunks !== o.vpp) {
      throw refuse(
        `stageRank gives rank ${rank} ${chunks} stages; each of 0..${o.pp - 1} has ${o.vpp}`,
      );
    }
  }
}

function refuse(message: string): TriremeError {
  return new TriremeError("LAYOUT", message);
}

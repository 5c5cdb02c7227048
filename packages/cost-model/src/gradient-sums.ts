/**
 * Sums of gradients over pipelines that differ: layers that every pipeline has in one stage are summed in as
 * many pieces as the widths of those stages divide, each piece over the ranks that hold it.
 */
import type { Bytes, Seconds } from "@trireme/core";
import {
  type Model,
  type Plan,
  bytesOf,
  gradientCollective,
  reducedBytes,
  stageParameters,
} from "@trireme/workload";
import type { Prices } from "./prices.ts";

/** A stage of a pipeline in the mesh. */
export interface Placed {
  readonly width: number;
  readonly firstRank: number;
  readonly firstLayer: number;
  readonly layers: number;
}

/** A piece of some layers' gradients, once per step. */
export interface GradientSum {
  /** Layers `firstLayer` to `endLayer − 1`. */
  readonly firstLayer: number;
  readonly endLayer: number;
  /** By pipeline: the rank that holds the piece, and its stage. */
  readonly ranks: readonly number[];
  readonly stages: readonly number[];
  readonly kind: "all-reduce" | "reduce-scatter";
  readonly bytes: Bytes;
  /** The sum, and under ZeRO 1 the weights back; 0 otherwise. */
  readonly reduce: Seconds;
  readonly gatheredBytes: Bytes;
  readonly gather: Seconds;
}

/** All sums, by layers, then by piece. */
export function gradientSums(
  prices: Prices,
  plan: Plan,
  pipelines: readonly (readonly Placed[])[],
): GradientSum[] {
  const { model } = prices;
  const list: GradientSum[] = [];
  const starts = new Set(pipelines.flat().map((stage) => stage.firstLayer));
  const bounds = [...starts, model.layers].sort((a, b) => a - b);
  const kind = gradientCollective(plan);
  for (const [i, firstLayer] of bounds.entries()) {
    const endLayer = bounds[i + 1];
    if (endLayer === undefined) break;
    const stages = pipelines.map((own) =>
      own.findIndex((s) => firstLayer < s.firstLayer + s.layers),
    );
    const placed = stages.map((stage, pipeline) => pipelines[pipeline]![stage]!);
    const pieces = placed.reduce((n, s) => leastCommonMultiple(n, s.width), 1);
    const parameters = trained(model, plan, pieces, firstLayer, endLayer);
    const bytes = parameters * reducedBytes(plan);
    const gatheredBytes = plan.zero === 0 ? 0 : parameters * bytesOf(plan.precision);
    for (let piece = 0; piece < pieces; piece++) {
      const ranks = placed.map((s) => s.firstRank + Math.floor((piece * s.width) / pieces));
      const reduce = prices.time(kind, ranks, bytes);
      const gather = plan.zero === 0 ? 0 : prices.time("all-gather", ranks, gatheredBytes);
      const layers = { firstLayer, endLayer };
      list.push({ ...layers, ranks, stages, kind, bytes, reduce, gatheredBytes, gather });
    }
  }
  return list;
}

/** Trained parameters of one piece of layers `first` to `end`, embedding and head with the ends. */
function trained(model: Model, plan: Plan, pieces: number, first: number, end: number): number {
  const { pipelines: _, pipelineBatches: __, ...rest } = plan;
  const layers = { stage: 0, firstLayer: first, layers: end - first };
  const ends = { embedding: first === 0, head: end === model.layers };
  return stageParameters(model, { ...rest, tp: pieces }, { ...layers, ...ends }).trainable;
}

function leastCommonMultiple(a: number, b: number): number {
  let [x, y] = [a, b];
  while (y > 0) [x, y] = [y, x % y];
  return (a / x) * b;
}

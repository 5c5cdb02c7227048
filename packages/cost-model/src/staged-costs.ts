/**
 * The costs of a plan whose pipelines differ (HexiScale, arXiv 2409.01143 §3): ranks run stage by stage, pipeline by
 * pipeline; each stage is priced on its own devices, at the pace of the slowest of them. Between stages a leader sends the whole
 * activation, gathered before and handed out behind. A layer's gradients are summed over the pipelines in as many pieces as all its
 * widths divide, one after another where a rank holds several.
 */
import type { Seconds } from "@trireme/core";
import { defineStagedMesh } from "@trireme/topology";
import {
  type Model,
  type Plan,
  boundaryBytes,
  bytesOf,
  gradientCollective,
  microbatches,
  reducedBytes,
  stageParameters,
  stagedAxes,
} from "@trireme/workload";
import { type KindCosts, kindCosts } from "./plan-costs.ts";
import type { Prices } from "./prices.ts";

/** One stage of one pipeline. */
export interface StagedStage {
  /** The plan as its pipeline would see it, were all stages of this one's width. */
  readonly plan: Plan;
  readonly devices: readonly number[];
  readonly layers: number;
  readonly costs: KindCosts;
  /** Sums of its gradients over the pipelines, and under ZeRO 1 the weights back; once per step, nothing hidden. */
  readonly reduce: Seconds;
  readonly gather: Seconds;
}

/** One pipeline. */
export interface StagedPipeline {
  readonly stages: readonly StagedStage[];
  /** Its slowest boundary. */
  readonly pointToPoint: Seconds;
  /** The sum of a tied table's gradient between its ends. */
  readonly tied: Seconds;
}

/** Prices the pipelines of `plan`; throws TriremeError "PRECISION" like `rooflinePricer`. */
export function stagedCosts(prices: Prices, plan: Plan): readonly StagedPipeline[] {
  const { model } = prices;
  const mesh = defineStagedMesh(stagedAxes(model, plan));
  const sync = synchronisation(prices, plan, mesh.pipelines);
  return mesh.pipelines.map((placed, pipeline) => {
    const stages = placed.map(({ width, firstRank, layers }, s): StagedStage => {
      const own = asUsual(plan, pipeline, width);
      const devices = Array.from({ length: width }, (_, i) => firstRank + i);
      const priced = prices.on(own, devices);
      const { reduce, gather } = sync[pipeline]![s]!;
      const costs = kindCosts(own, priced.list.stages[s]!, priced);
      return { plan: own, devices, layers, costs, reduce, gather };
    });
    return {
      stages,
      pointToPoint: slowestBoundary(prices, plan, stages),
      tied: tiedTable(prices, plan, stages),
    };
  });
}

/** A pipeline's plan if all of its stages had one width; its batch is that of all replicas. */
function asUsual(plan: Plan, pipeline: number, tp: number): Plan {
  const { pipelines, pipelineBatches: _, ...rest } = plan;
  const stages = pipelines![pipeline]!;
  return {
    ...rest,
    tp,
    pp: stages.length,
    globalBatch: microbatches(plan, pipeline) * plan.microbatch * plan.dp,
    stageLayers: stages.map((stage) => stage.layers),
  };
}

function slowestBoundary(prices: Prices, plan: Plan, stages: readonly StagedStage[]): Seconds {
  const bytes = boundaryBytes(prices.model, plan);
  let slowest = 0;
  for (const [i, to] of stages.entries()) {
    if (i === 0) continue;
    const from = stages[i - 1]!;
    const gathered = plan.sequenceParallel ? prices.time("all-gather", from.devices, bytes) : 0;
    const sent = prices.time("send", [from.devices[0]!, to.devices[0]!], bytes);
    const handedOut = prices.time("broadcast", to.devices, bytes);
    slowest = Math.max(slowest, gathered + sent + handedOut);
  }
  return slowest;
}

function tiedTable(prices: Prices, plan: Plan, stages: readonly StagedStage[]): Seconds {
  const { model } = prices;
  if (!model.tied || stages.length === 1) return 0;
  const [first, last] = [stages[0]!.devices, stages.at(-1)!.devices];
  const rows = Math.ceil(model.vocab / Math.min(first.length, last.length));
  const bytes = rows * model.hidden * bytesOf(plan.gradientPrecision);
  return prices.time("all-reduce", [first[0]!, last[0]!], bytes);
}

interface Placed {
  readonly width: number;
  readonly firstRank: number;
  readonly firstLayer: number;
  readonly layers: number;
}

/** By pipeline and stage. */
function synchronisation(
  prices: Prices,
  plan: Plan,
  pipelines: readonly (readonly Placed[])[],
): { reduce: Seconds; gather: Seconds }[][] {
  const { model } = prices;
  const sums = pipelines.map((stages) => stages.map(() => ({ reduce: 0, gather: 0 })));
  const starts = new Set(pipelines.flat().map((stage) => stage.firstLayer));
  const bounds = [...starts, model.layers].sort((a, b) => a - b);
  for (const [i, first] of bounds.entries()) {
    const end = bounds[i + 1];
    if (end === undefined) break;
    const holders = pipelines.map((stages) =>
      stages.findIndex((s) => first < s.firstLayer + s.layers),
    );
    const placed = holders.map((stage, pipeline) => pipelines[pipeline]![stage]!);
    const pieces = placed.reduce((n, s) => leastCommonMultiple(n, s.width), 1);
    const parameters = trained(model, plan, pieces, first, end);
    for (let piece = 0; piece < pieces; piece++) {
      const ranks = placed.map((s) => s.firstRank + Math.floor((piece * s.width) / pieces));
      const reduced = parameters * reducedBytes(plan);
      const reduce = prices.time(gradientCollective(plan), ranks, reduced);
      const gather =
        plan.zero === 0
          ? 0
          : prices.time("all-gather", ranks, parameters * bytesOf(plan.precision));
      for (const [pipeline, stage] of holders.entries()) {
        // All ranks of a stage hold as many pieces: its first stands for them.
        if (ranks[pipeline] !== placed[pipeline]!.firstRank) continue;
        sums[pipeline]![stage]!.reduce += reduce;
        sums[pipeline]![stage]!.gather += gather;
      }
    }
  }
  return sums;
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

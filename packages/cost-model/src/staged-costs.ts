/**
 * The costs of a plan whose pipelines differ (HexiScale, arXiv 2409.01143 §3): ranks run stage by stage, pipeline by
 * pipeline; each stage is priced on its own devices, at the pace of the slowest of them. Between stages a leader sends
 * the whole activation, gathered before and handed out behind. A layer's gradients are summed over the pipelines in as
 * many pieces as all its widths divide, one after another where a rank holds several.
 */
import type { Bytes, Seconds } from "@trireme/core";
import { defineStagedMesh } from "@trireme/topology";
import {
  type Pass,
  type Plan,
  boundaryBytes,
  bytesOf,
  microbatches,
  stagedAxes,
} from "@trireme/workload";
import type { Communication } from "./groups.ts";
import { type Placed, gradientSums } from "./gradient-sums.ts";
import { type KindCosts, kindCosts } from "./plan-costs.ts";
import type { Prices } from "./prices.ts";
import { type PricedOperator, kernels } from "./step-costs.ts";

/** One stage of one pipeline. */
export interface StagedStage {
  /** The plan as its pipeline would see it, were all stages of this one's width. */
  readonly plan: Plan;
  readonly devices: readonly number[];
  readonly layers: number;
  readonly costs: KindCosts;
  readonly communication: Communication;
  /** Its kernels of one pass in order, with their times. */
  operators(pass: Pass): readonly PricedOperator[];
  /** Sums of its gradients over the pipelines, and under ZeRO 1 the weights back; once per step, nothing hidden. */
  readonly reduce: Seconds;
  readonly gather: Seconds;
}

/** What one microbatch crosses between two stages, either way: the same in parts. */
export interface StagedBoundary {
  readonly bytes: Bytes;
  /** Put together by the ranks before it, sent by their leader to the next, and handed out by that. */
  readonly gathered: Seconds;
  readonly sent: Seconds;
  readonly handedOut: Seconds;
}

/** One pipeline. */
export interface StagedPipeline {
  readonly stages: readonly StagedStage[];
  /** After each stage but the last. */
  readonly boundaries: readonly StagedBoundary[];
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
      const { communication } = priced;
      const all = kernels(model, own, priced);
      const operators: StagedStage["operators"] = (pass) => all(s, pass);
      return { plan: own, devices, layers, costs, communication, operators, reduce, gather };
    });
    const boundaries = boundariesOf(prices, plan, stages);
    return {
      stages,
      boundaries,
      pointToPoint: boundaries.reduce(
        (slowest, { gathered, sent, handedOut }) => Math.max(slowest, gathered + sent + handedOut),
        0,
      ),
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

function boundariesOf(
  prices: Prices,
  plan: Plan,
  stages: readonly StagedStage[],
): StagedBoundary[] {
  const bytes = boundaryBytes(prices.model, plan);
  return stages.slice(1).map((to, i) => {
    const from = stages[i]!;
    return {
      bytes,
      gathered: plan.sequenceParallel ? prices.time("all-gather", from.devices, bytes) : 0,
      sent: prices.time("send", [from.devices[0]!, to.devices[0]!], bytes),
      handedOut: prices.time("broadcast", to.devices, bytes),
    };
  });
}

function tiedTable(prices: Prices, plan: Plan, stages: readonly StagedStage[]): Seconds {
  const { model } = prices;
  if (!model.tied || model.adapter !== undefined || stages.length === 1) return 0;
  const [first, last] = [stages[0]!.devices, stages.at(-1)!.devices];
  const rows = Math.ceil(model.vocab / Math.min(first.length, last.length));
  const bytes = rows * model.hidden * bytesOf(plan.gradientPrecision);
  return prices.time("all-reduce", [first[0]!, last[0]!], bytes);
}

/** By pipeline and stage. */
function synchronisation(
  prices: Prices,
  plan: Plan,
  pipelines: readonly (readonly Placed[])[],
): { reduce: Seconds; gather: Seconds }[][] {
  const sums = pipelines.map((stages) => stages.map(() => ({ reduce: 0, gather: 0 })));
  for (const { ranks, stages, reduce, gather } of gradientSums(prices, plan, pipelines)) {
    for (const [pipeline, stage] of stages.entries()) {
      // All ranks of a stage hold as many pieces: its first stands for them.
      if (ranks[pipeline] !== pipelines[pipeline]![stage]!.firstRank) continue;
      sums[pipeline]![stage]!.reduce += reduce;
      sums[pipeline]![stage]!.gather += gather;
    }
  }
  return sums;
}

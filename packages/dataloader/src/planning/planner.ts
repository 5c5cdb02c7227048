/**
 * The central planner: from metadata to a plan of each step. It never sees a token. What it decides is
 * a function of its program, its state and the metadata, so a planner that is started again, or that
 * runs on every host, decides the same.
 */
import { TriremeError } from "@trireme/core";
import { type Distribution, distribute, imbalanceOf } from "../distribution.ts";
import { type DataGraph, dataGraph, extendGraph } from "./data-graph.ts";
import { dealEncoders } from "./encoder-deal.ts";
import type { LoadProgramSpec } from "./load-program-spec.ts";
import { type Delivery, type LoadingPlan, deliveriesOf } from "./loading-plan.ts";
import { type MixDraw, type MixState, drawMix, startMix } from "./mixer.ts";
import type { SampleCosts, SampleMetadata } from "./sample-costs.ts";

/** Where a planner stands: what a checkpoint keeps at every step. Knows nothing of ranks. */
export interface PlannerState {
  /** The next step to plan. */
  readonly step: number;
  readonly mix: MixState;
}

/** The samples of a step before anything is known of them. */
export interface PlannerDraw {
  readonly step: number;
  readonly sources: Int32Array;
  readonly positions: Float64Array;
  readonly next: PlannerState;
}

/** Decides steps; pure. */
export interface Planner {
  readonly spec: LoadProgramSpec;
  /** Who reads what: the same at every step. */
  readonly deliveries: readonly Delivery[];
  start(): PlannerState;
  /** Which samples the state's step has: depends on the mixture alone, not on ranks or costs. */
  draw(state: PlannerState): PlannerDraw;
  /** Where each goes, given what the sources tell of them, in the draw's order. */
  decide(draw: PlannerDraw, metadata: readonly SampleMetadata[]): LoadingPlan;
}

/**
 * The planner of a program.
 * @throws TriremeError "LOAD_PROGRAM" where its numbers do not fit, "MIX" or "MIXTURE" where its mixture
 * does not.
 */
export function createPlanner(spec: LoadProgramSpec): Planner {
  const { tree, sources, globalBatch, microbatches, equalCounts } = spec;
  for (const [name, value] of Object.entries({ globalBatch, microbatches })) {
    if (!Number.isSafeInteger(value) || value < 1)
      throw new TriremeError("LOAD_PROGRAM", `${name} ${value} is not a positive integer`);
  }
  if (sources.length === 0) throw new TriremeError("LOAD_PROGRAM", "no sources; give at least one");
  const twice = sources.find((name, i) => sources.indexOf(name) !== i);
  if (twice !== undefined)
    throw new TriremeError("LOAD_PROGRAM", `two sources are named "${twice}"`);
  const quantum = tree.shares * (equalCounts ? microbatches : 1);
  if (globalBatch % quantum !== 0) {
    const parts = equalCounts ? ` x microbatches(${microbatches}) = ${quantum}` : "";
    const nearest = Math.max(1, Math.round(globalBatch / quantum)) * quantum;
    throw new TriremeError(
      "LOAD_PROGRAM",
      `global batch ${globalBatch} is not a multiple of shares(${tree.shares})${parts}; the nearest is ${nearest}`,
    );
  }
  // A mixture that does not fit its sources is refused now, not at the first step.
  drawMix(spec.mix, startMix(sources.length), 0, 0);
  const deliveries = deliveriesOf(tree, new Set(spec.broadcast));
  return {
    spec,
    deliveries,
    start: () => ({ step: 0, mix: startMix(sources.length) }),
    draw({ step, mix }) {
      const drawn: MixDraw = drawMix(spec.mix, mix, step, globalBatch);
      return {
        step,
        sources: drawn.sources,
        positions: drawn.positions,
        next: { step: step + 1, mix: drawn.next },
      };
    },
    decide({ step, sources: from, positions }, metadata) {
      if (metadata.length !== globalBatch) {
        throw new TriremeError(
          "LOAD_PROGRAM",
          `step ${step}: metadata of ${metadata.length} samples for a global batch of ${globalBatch}`,
        );
      }
      const costs = metadata.map(spec.costOf);
      const dealt = dealInGroups(spec, costs);
      const encoders = spec.level === "hybrid" ? dealEncoders(spec, costs, dealt.shareOf) : [];
      return {
        step,
        sources: from,
        positions,
        tokens: Float64Array.from(metadata, ({ tokens }) => tokens),
        shares: tree.shares,
        microbatches,
        ...dealt,
        deliveries,
        encoders: encoders.map(({ deal }) => deal),
        graphs: [backboneGraph(dealt, spec), ...encoders.map(({ graph }) => graph)],
      };
    },
  };
}

type Dealt = Pick<LoadingPlan, "shareOf" | "microbatchOf" | "loads" | "imbalance">;

/** Groups take contiguous parts of the batch; within each, its samples are dealt by the method. */
function dealInGroups(spec: LoadProgramSpec, costs: readonly SampleCosts[]): Dealt {
  const { tree, groupSize, microbatches, method, equalCounts, level, globalBatch } = spec;
  const backbone = costs.map((cost) => cost.backbone);
  const balanced =
    level === "encoder"
      ? costs.map(({ parts }) => parts.reduce((sum, part) => sum + part.cost, 0))
      : backbone;
  const groups = tree.shares / groupSize;
  const perGroup = globalBatch / groups;
  const shareOf = new Int32Array(globalBatch);
  const microbatchOf = new Int32Array(globalBatch);
  const loads = new Float64Array(tree.shares * microbatches);
  for (let group = 0; group < groups; group++) {
    const first = group * perGroup;
    const deal: Distribution = distribute({
      costs: balanced.slice(first, first + perGroup),
      ranks: groupSize,
      microbatches,
      method,
      equalCounts,
    });
    for (let i = 0; i < perGroup; i++) {
      const sample = first + i;
      shareOf[sample] = group * groupSize + deal.rankOf[i]!;
      microbatchOf[sample] = deal.microbatchOf[i]!;
      loads[shareOf[sample] * microbatches + microbatchOf[sample]]! += backbone[sample]!;
    }
  }
  const perShare = Array.from({ length: tree.shares }, (_, share) =>
    loads.subarray(share * microbatches, (share + 1) * microbatches).reduce((a, b) => a + b),
  );
  return { shareOf, microbatchOf, loads, imbalance: imbalanceOf(perShare) };
}

function backboneGraph(dealt: Dealt, { tree, microbatches }: LoadProgramSpec): DataGraph {
  const samples = dealt.shareOf.length;
  const inMicrobatch = Array.from({ length: tree.shares * microbatches }, (): number[] => []);
  for (let i = 0; i < samples; i++)
    inMicrobatch[dealt.shareOf[i]! * microbatches + dealt.microbatchOf[i]!]!.push(i);
  const inShare = Array.from({ length: tree.shares }, (_, share) =>
    Array.from({ length: microbatches }, (__, m) => share * microbatches + m),
  );
  let graph = dataGraph("backbone", "sample", samples);
  graph = extendGraph(graph, "microbatch", inMicrobatch);
  graph = extendGraph(graph, "share", inShare);
  return extendGraph(
    graph,
    "rank",
    tree.places.map(({ share }) => [share]),
  );
}

/**
 * Uneven experts: where each token goes decides how long each rank's experts compute and how long an
 * exchange takes, which waits for the rank that sends or receives the most.
 */
import { TriremeError } from "@trireme/core";
import {
  type RoutingTrace,
  exchangeVolume,
  planDispatch,
  splitsFromCounts,
} from "@trireme/moe-dispatch";
import {
  type Model,
  type Plan,
  layerFormAt,
  layerForms,
  microbatches,
  rankTokens,
  stages,
} from "@trireme/workload";
import type { RankLayout } from "./rank-layout.ts";
import type { Variation } from "./step-description.ts";

/** One layer's experts in one expert-parallel group for one microbatch. */
export interface RoutedLayer {
  /** Layer of the model. */
  readonly layer: number;
  readonly microbatch: number;
  /** Number of the expert-parallel group. */
  readonly group: number;
}

/** How many rows each rank of a group has for each expert: [ep, experts] in order of both. */
export type RoutedCounts = (at: RoutedLayer) => ArrayLike<number>;

/**
 * Counts from a trace of router choices, planned by `planDispatch`. Every layer, microbatch and group
 * draws choices of its own: those of trace step ((step × microbatches + microbatch) × layers + layer) ×
 * groups + group. The trace must have ep × (tokens of a rank in a microbatch) tokens.
 */
export function routedByTrace(
  trace: RoutingTrace,
  o: { readonly model: Model; readonly plan: Plan; readonly step?: number },
): RoutedCounts {
  const { model, plan, step = 0 } = o;
  const experts = model.experts;
  if (experts === undefined) {
    throw new TriremeError("ROUTING", `${model.name} has no experts; leave routing out`);
  }
  const groups = (plan.tp * plan.cp * plan.dp * plan.pp) / plan.ep;
  return ({ layer, microbatch, group }) => {
    const at = (step * microbatches(plan) + microbatch) * model.layers + layer;
    const expertIds = trace.choices(at * groups + group);
    const expected = plan.ep * rankTokens(plan) * experts.active;
    if (expertIds.length !== expected) {
      throw new TriremeError(
        "ROUTING",
        `the trace has ${expertIds.length} choices a step, but ep(${plan.ep}) x ${rankTokens(plan)} tokens x top-${experts.active} = ${expected}`,
      );
    }
    return planDispatch({
      expertIds,
      topK: experts.active,
      experts: experts.count,
      ranks: plan.ep,
    }).counts;
  };
}

interface GroupLoad {
  /** By rank of the group: rows that its experts compute, of an even share. */
  readonly experts: Float64Array;
  /** Largest of rows that a rank sends or receives, of what it would be if even. */
  readonly exchange: number;
}

/** What of a step varies by routes. With a capacity every expert is padded to it, and nothing does. */
export function unevenExperts(
  counts: RoutedCounts,
  o: { readonly model: Model; readonly plan: Plan; readonly layout: RankLayout },
): Required<Pick<Variation, "experts" | "exchange">> | undefined {
  const { model, plan, layout } = o;
  if (model.experts === undefined) {
    throw new TriremeError("ROUTING", `${model.name} has no experts; leave routing out`);
  }
  if (plan.ep === 1 || plan.expertCapacity !== undefined) return undefined;
  const experts = model.experts.count;
  const { of, members } = layout.groups.ep;
  const list = stages(model, plan);
  const forms = layerForms(model);
  const known = new Map<string, GroupLoad>();
  const place = new Int32Array(layout.ranks);
  for (const group of members) group.forEach((rank, i) => (place[rank] = i));
  const loadOf = (rank: number, stage: number, slice: number, microbatch: number): GroupLoad => {
    const layer = list[stage]!.firstLayer + slice;
    const group = of[rank]!;
    const key = `${group} ${layer} ${microbatch}`;
    let load = known.get(key);
    if (load === undefined) {
      const mixed = layer < model.layers && forms[layerFormAt(model, layer)]!.experts;
      load = mixed
        ? groupLoad(counts({ layer, microbatch, group }), plan.ep, experts)
        : even(plan.ep);
      known.set(key, load);
    }
    return load;
  };
  return {
    experts: (rank, stage, layer, microbatch) =>
      loadOf(rank, stage, layer, microbatch).experts[place[rank]!]!,
    exchange: (rank, stage, layer, microbatch) => loadOf(rank, stage, layer, microbatch).exchange,
  };
}

function even(ranks: number): GroupLoad {
  return { experts: new Float64Array(ranks).fill(1), exchange: 1 };
}

function groupLoad(counts: ArrayLike<number>, ranks: number, experts: number): GroupLoad {
  const splits = splitsFromCounts(counts, ranks, experts);
  const rows = new Float64Array(ranks);
  let total = 0;
  for (let i = 0; i < splits.length; i++) {
    rows[i % ranks]! += splits[i]!;
    total += splits[i]!;
  }
  if (total === 0) return { experts: rows, exchange: 0 };
  const share = total / ranks;
  const evenly = (share * (ranks - 1)) / ranks;
  return {
    experts: rows.map((n) => n / share),
    exchange: exchangeVolume(splits, ranks).largest / evenly,
  };
}

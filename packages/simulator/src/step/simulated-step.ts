/** A step made ready to be played: its program, which ranks it has, and what their devices share. */
import { type Seconds, TriremeError } from "@trireme/core";
import { memory } from "@trireme/cost-model";
import { hostOf } from "@trireme/topology";
import { type Plan, boundaryBytes } from "@trireme/workload";
import { programNetwork } from "../network/program-network.ts";
import type { Jitter } from "../program/jitter.ts";
import { type PricedPlan, describeStep, transfers } from "./describe-step.ts";
import { type SimulatedRanks, fold, unfolded } from "./fold.ts";
import { type DocumentLengths, packedAttention } from "./packed-lengths.ts";
import { type PlayableStep, check, sharedHosts, speeds } from "./playable-step.ts";
import { type RankLayout, rankLayout } from "./rank-layout.ts";
import type { StepDescription } from "./step-description.ts";
import { stepProgram } from "./step-program.ts";
import { type RoutedCounts, unevenExperts } from "./uneven-experts.ts";

/** What is simulated, and what is uneven in it; left out, everything is even. */
export interface SimulateOptions extends PricedPlan {
  /** Simulate every rank, also those that do the same; false when left out. */
  readonly unfold?: boolean;
  /** Spans of computing: whole parts of actions (the default), or kernels. */
  readonly grain?: "action" | "operator";
  /**
   * Multiprocessors that a collective keeps from the computing that hides it (MegaScale-MoE's budgets
   * give each its own); the cost model's 17 % when left out. The slow-down is drawn as exposed.
   */
  readonly communicationMultiprocessors?: number;
  /**
   * Whether collectives and messages that are under way at once slow each other where they share links
   * of the cluster (devices' ports, NICs, cables), by max-min rates. "own", each on ways of its own, is
   * the default; "shared" simulates every rank.
   */
  readonly network?: "own" | "shared";
  /** Speed of each rank's computing: 1 as priced, 0.9 a tenth slower. By rank of the plan. */
  readonly speed?: (rank: number) => number;
  /** Random variation of every computation, by simulated rank: with it every rank is simulated. */
  readonly jitter?: Jitter;
  /** Where tokens go; see `routedByTrace`. */
  readonly routing?: RoutedCounts;
  /** How long the documents are; see `packedLengths`. */
  readonly lengths?: DocumentLengths;
  /** How long ranks that read samples (of the first and the last stage) load before they begin. */
  readonly loading?: Seconds | ((rank: number) => Seconds);
}

/** A step of a plan whose pipelines are alike, ready to be played. */
export interface SimulatedStep extends PlayableStep {
  readonly layout: RankLayout;
  readonly ranks: SimulatedRanks;
  readonly description: StepDescription;
}

/**
 * Makes a step ready.
 * @throws TriremeError `PLAN` when the plan has more ranks than the cluster devices, or pipelines that
 * differ (see `playableStep`), `PRECISION`
 * when the device does not compute in the plan's precision, `SPEED` for a speed that is not positive.
 */
export function simulatedStep(o: SimulateOptions): SimulatedStep {
  const { model, plan, cluster } = o;
  if (plan.pipelines !== undefined) {
    throw new TriremeError(
      "PLAN",
      `${plan.dp} pipelines that differ have no ranks that do alike; use playableStep`,
    );
  }
  check(plan, cluster);
  const layout = rankLayout(plan);
  const uneven =
    o.routing === undefined ? undefined : unevenExperts(o.routing, { model, plan, layout });
  const packed = o.lengths === undefined ? undefined : packedAttention(o.lengths, { plan, layout });
  const hosts = sharedHosts(cluster, plan);
  const ranksOf = (): SimulatedRanks => {
    const every = o.unfold === true || o.network === "shared" || o.jitter !== undefined;
    if (every || hosts.length > 0) return unfolded(layout);
    return fold(layout, differences(o, layout));
  };
  const simulated = ranksOf();
  const readers = readingRanks(plan);
  const { loading = 0, ...rest } = o;
  const timeOf = typeof loading === "number" ? (): Seconds => loading : loading;
  const description = describeStep({
    ...rest,
    layout,
    ranks: simulated,
    operators: o.grain === "operator",
    loading: (rank) => (readers.has(layout.stageRank[rank]!) ? timeOf(rank) : 0),
    ...(uneven === undefined && packed === undefined
      ? {}
      : { variation: { ...uneven, ...packed } }),
  });
  const program = stepProgram(description);
  return {
    layout,
    ranks: simulated,
    description,
    program,
    memory: memory({ model, plan }),
    device: hostOf(cluster, 0).accelerator,
    play: {
      rankOf: simulated.rankOf,
      ...(o.network === "shared" ? { network: programNetwork({ cluster, program }) } : {}),
      ...(o.jitter === undefined ? {} : { jitter: o.jitter }),
      ...(o.speed === undefined ? {} : { speed: speeds(o.speed, simulated.rankOf) }),
      ...(hosts.length === 0
        ? {}
        : {
            shared: hosts.map((host) => ({
              ...host,
              ranks: host.ranks.map((rank) => simulated.standIn[rank]!),
            })),
          }),
    },
    folded: simulated.count < layout.ranks,
  };
}

/** Pipeline ranks that read samples: of the first stage the inputs, of the last the labels. */
function readingRanks({ pp, vpp, schedule }: Plan): ReadonlySet<number> {
  const folds = vpp % 2 === 0 && ["zb-v", "v-half", "v-min", "dualpipe-v"].includes(schedule);
  return new Set(folds ? [0] : [0, pp - 1]);
}

/** By rank: equal numbers where ranks of one pipeline coordinate do the same at the same speed. */
function differences(o: SimulateOptions, layout: RankLayout): Int32Array {
  const { plan, cluster, model } = o;
  const transfer = transfers(cluster, plan.pp > 1 ? boundaryBytes(model, plan) : 0, 0);
  const links = new Map<object, number>();
  const linkTo = (rank: number, p: number): number => {
    const link = transfer(rank, layout.along(rank, p));
    let number = links.get(link);
    if (number === undefined) links.set(link, (number = links.size));
    return number;
  };
  const names = new Map<string, number>();
  return Int32Array.from({ length: layout.ranks }, (_, rank) => {
    const p = layout.stageRank[rank]!;
    let key = `${o.speed?.(rank) ?? 1}`;
    if (typeof o.loading === "function") key += ` ${o.loading(rank)}`;
    if (o.lengths !== undefined) key += ` ${layout.replica[rank]!}`;
    if (o.routing !== undefined && plan.ep > 1) key += ` ${rank}`;
    for (const other of [p - 1, p + 1, plan.pp - 1 - p]) {
      const to = (other + plan.pp) % plan.pp;
      if (to !== p) key += ` ${linkTo(rank, to)}`;
    }
    let number = names.get(key);
    if (number === undefined) names.set(key, (number = names.size));
    return number;
  });
}

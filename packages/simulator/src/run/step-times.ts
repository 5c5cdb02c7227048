/**
 * The time of a step as a function of who trains and who is slow, each condition priced once. What
 * matters of slow hosts is which pipeline ranks of one replica they are: replicas wait for each other
 * once a step, so their conditions are taken one by one, in no order, and those that are no worse
 * than another's are left out.
 */
import { TriremeError, type Seconds } from "@trireme/core";
import { type Cost, estimate } from "@trireme/cost-model";
import type { Cluster } from "@trireme/topology";
import { type Model, type Plan, ranks } from "@trireme/workload";
import { type RankLayout, rankLayout } from "../step/rank-layout.ts";
import { sumStep } from "../step/simulate-step.ts";
import { coupledReplicas, devicesPerHost, elasticPlan } from "./elastic-plan.ts";

/** How much longer hosts compute, by their place in the order of ranks: 1.1 is a tenth longer. */
export type SlowHosts = ReadonlyMap<number, number>;

/** Times of steps by condition. */
export interface StepTimes {
  readonly model: Model;
  readonly plan: Plan;
  readonly cluster: Cluster;
  /** Of one step on so many hosts, some of them slow. */
  time(hosts: number, slow?: SlowHosts): Seconds;
  /** Conditions priced so far. */
  readonly priced: number;
}

/** A replica's slow pipeline ranks: how much longer each computes. */
type ReplicaCondition = ReadonlyMap<number, number>;

export interface StepTimesOptions {
  readonly model: Model;
  readonly plan: Plan;
  readonly cluster: Cluster;
}

/** Slowness is told apart by so much: a half per cent. */
const grain = 200;

/**
 * Times by the cost model. A pipeline with a slow stage goes at that stage's rate: the step grows by
 * what the slowest adds to the computing of its rank, and each further slow stage adds its part to
 * the filling and draining.
 */
export function estimatedStepTimes(o: StepTimesOptions): StepTimes {
  const costs = new Map<Plan, Cost>();
  return cached(o, (plan, conditions) => {
    let cost = costs.get(plan);
    if (cost === undefined) costs.set(plan, (cost = costOf({ ...o, plan })));
    const { compute, optimizer, bubble } = cost.breakdown;
    let added = 0;
    for (const condition of conditions) {
      const factors = [...condition.values()].toSorted((a, b) => b - a);
      const fill = plan.pp > 1 ? bubble / (plan.pp - 1) : 0;
      const others = factors.slice(1).reduce((sum, each) => sum + each - 1, 0);
      added = Math.max(added, (factors[0]! - 1) * (compute + optimizer) + others * fill);
    }
    return cost.step + added;
  });
}

/** Times by `sumStep`, event by event: exact, and as much slower. */
export function simulatedStepTimes(o: StepTimesOptions): StepTimes {
  return cached(o, (plan, conditions, layout) => {
    const coupled = coupledReplicas(plan);
    const speed = (rank: number): number => {
      const group = Math.floor(layout.replica[rank]! / coupled);
      return 1 / (conditions[group]?.get(layout.stageRank[rank]!) ?? 1);
    };
    return sumStep({ ...o, plan, ...(conditions.length === 0 ? {} : { speed }) }).step;
  });
}

/** What the cost model says of a plan. @throws TriremeError "RUN" where it cannot run. */
export function costOf(o: StepTimesOptions): Cost {
  const cost = estimate(o);
  if (!cost.ok) throw new TriremeError("RUN", `the plan cannot run: ${cost.reason}`);
  return cost;
}

type PriceOf = (plan: Plan, conditions: readonly ReplicaCondition[], layout: RankLayout) => Seconds;

function cached(o: StepTimesOptions, price: PriceOf): StepTimes {
  const devices = devicesPerHost(o.cluster);
  const scales = new Map<number, { readonly plan: Plan; readonly layout: RankLayout }>();
  const known = new Map<string, Seconds>();
  const scaleOf = (hosts: number): { readonly plan: Plan; readonly layout: RankLayout } => {
    let scale = scales.get(hosts);
    if (scale === undefined) {
      // The last host of a plan may hold ranks of it on some of its devices only.
      const count = Math.min(hosts * devices, ranks(o.plan));
      const plan = elasticPlan(o.model, o.plan, count);
      scales.set(hosts, (scale = { plan, layout: rankLayout(plan) }));
    }
    return scale;
  };
  return {
    ...o,
    time(hosts, slow = new Map()) {
      const { plan, layout } = scaleOf(hosts);
      const conditions = slow.size === 0 ? [] : conditionsOf(slow, plan, layout, devices);
      const key = `${hosts} ${conditions.map(nameOf).join(" ")}`;
      let time = known.get(key);
      if (time === undefined) known.set(key, (time = price(plan, conditions, layout)));
      return time;
    },
    get priced() {
      return known.size;
    },
  };
}

/** Conditions of replicas that are no better than any other's, in order of name. */
function conditionsOf(
  slow: SlowHosts,
  plan: Plan,
  layout: RankLayout,
  devices: number,
): readonly ReplicaCondition[] {
  const coupled = coupledReplicas(plan);
  const groups = new Map<number, Map<number, number>>();
  for (const [place, factor] of slow) {
    if (!(factor >= 1 && factor < Infinity)) {
      throw new TriremeError("RUN", `host ${place} is slower by ${factor}: use 1 or more`);
    }
    const rounded = Math.round(factor * grain) / grain;
    if (rounded === 1) continue;
    const end = Math.min((place + 1) * devices, layout.ranks);
    for (let rank = place * devices; rank < end; rank++) {
      const group = Math.floor(layout.replica[rank]! / coupled);
      const stages = groups.get(group) ?? new Map<number, number>();
      groups.set(group, stages);
      const stage = layout.stageRank[rank]!;
      stages.set(stage, Math.max(rounded, stages.get(stage) ?? 1));
    }
  }
  const distinct = new Map([...groups.values()].map((each) => [nameOf(each), each]));
  const all = [...distinct.values()];
  const worst = all.filter((each) => !all.some((other) => other !== each && covers(other, each)));
  return worst.toSorted((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
}

/** Whether a replica is slow wherever another is, by as much at least. */
function covers(a: ReplicaCondition, b: ReplicaCondition): boolean {
  return [...b].every(([stage, factor]) => (a.get(stage) ?? 1) >= factor);
}

function nameOf(condition: ReplicaCondition): string {
  return [...condition]
    .toSorted(([a], [b]) => a - b)
    .map(([stage, factor]) => `${stage}:${factor}`)
    .join(",");
}

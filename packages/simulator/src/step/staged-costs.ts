/** A step whose pipelines differ in numbers: the parts of every stage, priced on its own devices. */
import type { Seconds } from "@trireme/core";
import { type StagedStage, type StagedStepCosts, stagedStepCosts } from "@trireme/cost-model";
import { type Schedule, createSchedule, lower } from "@trireme/schedulers";
import type { Cluster } from "@trireme/topology";
import { type Plan, microbatches, stageOperators, stages } from "@trireme/workload";
import { type PricedPlan, laneOf } from "./describe-step.ts";
import { type PartCosts, amongReplicas, stageParts } from "./stage-parts.ts";
import type { StageParts, TimedCollective } from "./step-description.ts";

/** One pipeline of a step. */
export interface StagedSchedule {
  /** Lowered: with its sends and receives. */
  readonly schedule: Schedule;
  /** By stage. */
  readonly parts: readonly StageParts[];
  readonly stages: readonly StagedStage[];
  /** By stage: gradients that its ranks hold in common, once per step. */
  readonly common: readonly (readonly TimedCollective[])[];
}

/** A step of pipelines that differ. */
export interface StagedDescription {
  readonly costs: StagedStepCosts;
  readonly pipelines: readonly StagedSchedule[];
}

/** What a program of pipelines that differ is made from. */
export interface StagedProgramOptions {
  readonly plan: Plan;
  readonly cluster: Cluster;
  readonly description: StagedDescription;
  /** By rank, for those that read data: how long they load before they begin. */
  readonly loading: (rank: number) => Seconds;
}

/** Describes the step of a plan with pipelines; throws TriremeError "PRECISION" like `stagedStepCosts`. */
export function describeStaged(o: PricedPlan, operators: boolean): StagedDescription {
  const { model, plan, cluster } = o;
  const costs = stagedStepCosts(o);
  const pipelines = costs.pipelines.map(({ stages: own }, pipeline): StagedSchedule => {
    const shape = { ranks: own.length, microbatches: microbatches(plan, pipeline) };
    const priced = own.map((stage, s) => {
      const { communication, plan: seen, devices } = stage;
      const lane = laneOf(cluster, devices);
      const { collectives } = stageOperators(model, seen, stages(model, seen)[s]!);
      const parts = stageParts({
        costs: alone(stage),
        stage: 0,
        collectives,
        lanes: { tp: lane, cp: lane, dp: lane, ep: lane, etp: lane, edp: lane },
        operators,
      });
      const common = collectives
        .filter((c) => c.pass === "update" && !amongReplicas(c))
        .map(({ kind, axis, bytes: each, count }): TimedCollective => {
          const bytes = each * count;
          return { kind, axis, lane, bytes, duration: communication.collective(kind, axis, bytes) };
        });
      return { parts, common };
    });
    return {
      schedule: lower(createSchedule(plan.schedule, shape)),
      parts: priced.map(({ parts }) => parts),
      common: priced.map(({ common }) => common),
      stages: own,
    };
  });
  return { costs, pipelines };
}

/** The costs of one stage as those of a step that has no other. */
function alone(stage: StagedStage): PartCosts {
  const { costs, communication } = stage;
  const one = (time: number): Float64Array => Float64Array.of(time);
  return {
    forward: one(costs.forward),
    inputGradient: one(costs.inputGradient),
    weightGradient: one(costs.weightGradient),
    recompute: one(costs.recompute),
    tensorParallel: {
      forward: one(costs.tensorParallelForward),
      backward: one(costs.tensorParallelBackward),
    },
    sharding: { forward: one(costs.shardingForward), backward: one(costs.shardingBackward) },
    communication,
    operators: (_stage, pass) => stage.operators(pass),
  };
}

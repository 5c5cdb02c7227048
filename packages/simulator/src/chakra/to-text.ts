/** A plan as a text workload, so that the same step runs in SimAI and ASTRA-sim 1. */
import { stepCosts } from "@trireme/cost-model";
import { type Seconds, TriremeError } from "@trireme/core";
import {
  type CollectiveOperator,
  type Pass,
  microbatches,
  ranks,
  stageOperators,
  stages,
} from "@trireme/workload";
import type { PricedPlan } from "../step/describe-step.ts";
import { stageParts } from "../step/stage-parts.ts";
import type { TextLayer, TextPass, TextWorkload } from "./text-workload.ts";

/** A plan and the pipeline rank whose part of it is written. */
export interface TextWorkloadOptions extends PricedPlan {
  /** The first when left out; SimAI takes all to have as much. */
  readonly pipelineRank?: number;
}

const idle: TextPass = { compute: 0, collective: "NONE", group: "", bytes: 0 };

const names = {
  "all-reduce": "ALLREDUCE",
  "all-gather": "ALLGATHER",
  "reduce-scatter": "REDUCESCATTER",
  "all-to-all": "ALLTOALL",
} as const;

/**
 * The step of one pipeline rank: what is done once, then each microbatch's layers. A line has one
 * collective for each pass; where a layer has more, empty lines follow with them.
 * @throws TriremeError "WORKLOAD" for a plan that the form cannot say: with context parallelism, experts
 * that are split, weights gathered for every layer, or a vocabulary split over stages.
 */
export function toTextWorkload(o: TextWorkloadOptions): TextWorkload {
  const { model, plan, pipelineRank = 0 } = o;
  checkPlan(o);
  const costs = stepCosts(o);
  const lane = "inter" as const;
  const lanes = { tp: lane, cp: lane, dp: lane, ep: lane, etp: lane, edp: lane };
  const own = stages(model, plan).filter(({ stage }) => stage % plan.pp === pipelineRank);
  const once: TextLayer[] = [];
  const microbatch: TextLayer[] = [];
  for (const stage of own) {
    const { collectives } = stageOperators(model, plan, stage);
    const parts = stageParts({ costs, stage: stage.stage, collectives, lanes, operators: false });
    const count = Math.max(1, stage.layers);
    const time = (list: readonly { readonly duration: Seconds }[]): Seconds =>
      list.reduce((sum, { duration }) => sum + duration, 0) / count;
    const of = (...passes: Pass[]): TextPass[] =>
      collectives.filter((c) => passes.includes(c.pass)).map((c) => passOf(c, count));
    const layer = lines(`stage${stage.stage}`, {
      forward: { compute: time(parts.F), collectives: of("forward") },
      inputGradient: {
        compute: time(parts.I),
        collectives: of("recompute", "input-gradient", "weight-gradient"),
      },
      weightGradient: { compute: time(parts.W), collectives: [] },
    });
    for (let i = 0; i < count; i++) microbatch.push(...layer);
    const updates = collectives.filter((c) => c.pass === "update");
    const replicas = updates.filter((c) => c.axis === "dp" || c.axis === "edp");
    const others = updates.filter((c) => !replicas.includes(c));
    once.push(
      ...lines(`update${stage.stage}`, {
        forward: { compute: 0, collectives: [] },
        inputGradient: { compute: 0, collectives: others.map((c) => passOf(c, 1)) },
        weightGradient: { compute: 0, collectives: replicas.map((c) => passOf(c, 1)) },
      }),
    );
  }
  const optimizer: TextLayer = {
    name: "optimizer",
    forward: idle,
    inputGradient: { ...idle, compute: costs.optimizer[pipelineRank]! },
    weightGradient: idle,
    update: 0,
  };
  return {
    parallelism: "HYBRID_TRANSFORMER_FWD_IN_BCKWD",
    tp: plan.tp,
    ep: plan.ep,
    pp: plan.pp,
    vpp: plan.vpp,
    microbatches: microbatches(plan),
    allGpus: ranks(plan),
    boundary: plan.pp > 1 ? Math.round(costs.boundary) : 0,
    layers: [
      optimizer,
      ...once,
      ...Array.from({ length: microbatches(plan) }, () => microbatch).flat(),
    ],
  };
}

function checkPlan({ plan, pipelineRank = 0 }: TextWorkloadOptions): void {
  const wrong =
    plan.cp > 1
      ? `context parallelism (cp ${plan.cp})`
      : plan.etp > 1
        ? `experts that are split (etp ${plan.etp})`
        : plan.zero === 3
          ? "weights that are gathered for every layer (zero 3)"
          : plan.pipelines !== undefined
            ? "pipelines that differ"
            : undefined;
  if (wrong !== undefined) {
    throw new TriremeError("WORKLOAD", `text workloads cannot say ${wrong}; use toChakra`);
  }
  if (plan.vocabulary !== undefined) {
    throw new TriremeError(
      "WORKLOAD",
      `text workloads cannot say vocabulary ${plan.vocabulary}; leave it out`,
    );
  }
  if (!Number.isInteger(pipelineRank) || pipelineRank < 0 || pipelineRank >= plan.pp) {
    throw new TriremeError(
      "WORKLOAD",
      `pipelineRank ${pipelineRank}: give one of 0..${plan.pp - 1}`,
    );
  }
}

/** A collective of so many layers, for one of them. */
function passOf(c: CollectiveOperator, layers: number): TextPass {
  const group = c.axis === "ep" ? "EP" : c.axis === "edp" ? "DP_EP" : "";
  return { compute: 0, collective: names[c.kind], group, bytes: (c.bytes * c.count) / layers };
}

interface Column {
  readonly compute: Seconds;
  readonly collectives: readonly TextPass[];
}

/** As many lines as the pass with the most collectives has, the first with all computing. */
function lines(
  name: string,
  passes: Readonly<Record<"forward" | "inputGradient" | "weightGradient", Column>>,
): TextLayer[] {
  const { forward, inputGradient, weightGradient } = passes;
  const columns = [forward, inputGradient, weightGradient];
  const rows = Math.max(1, ...columns.map(({ collectives }) => collectives.length));
  const cell = ({ compute, collectives }: Column, row: number): TextPass => ({
    ...(collectives[row] ?? idle),
    compute: row === 0 ? compute : 0,
  });
  return Array.from({ length: rows }, (_, row) => ({
    name,
    forward: cell(forward, row),
    inputGradient: cell(inputGradient, row),
    weightGradient: cell(weightGradient, row),
    update: 0,
  }));
}

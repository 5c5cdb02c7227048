/** The plan as Megatron-LM's arguments. */
import { printLayout } from "@trireme/schedulers";
import type { Plan } from "@trireme/workload";
import type { ResolvedRun } from "../resolved.ts";
import type { Refuse, Settings } from "./megatron-experts.ts";

const exchanges = { ring: undefined, "all-gather": "all_gather", "all-to-all": "a2a" } as const;
const dispatchers = { "all-to-all": undefined, unique: "flex", "all-gather": "allgather" } as const;
const graphs = {
  none: [undefined, undefined],
  routing: ["transformer_engine", "moe_router moe_preprocess"],
  all: ["local", "full_iteration"],
} as const;

/** Degrees, batch and options as arguments. */
export function planSettings({ plan, model }: ResolvedRun, refuse: Refuse): Settings {
  const { zero, recompute, precision, recomputeLayers } = plan;
  const order = plan.order.filter((axis) => plan[axis] > 1 || axis === "tp").join("-");
  const swapped = plan.order.indexOf("pp") < plan.order.indexOf("dp");
  const orders = ["tp-cp-dp-pp", "tp-cp-pp-dp"];
  const legal = orders.some((o) => {
    const axes = o.split("-").filter((axis) => order.split("-").includes(axis));
    return axes.join("-") === order;
  });
  if (!legal) refuse("plan.order", plan.order, `only ${orders.join(" and ")}`);
  if (recomputeLayers !== undefined && recompute !== "full") {
    refuse("plan.recomputeLayers", recomputeLayers, "counts only with recompute full");
  }
  const [graph, scope] = graphs[plan.cudaGraphs];
  const splitsExperts = model.experts !== undefined && plan.etp !== plan.tp;
  const experts = recompute === "experts";
  const granularity =
    recompute === "selective" || recompute === "full"
      ? recompute
      : experts
        ? "selective"
        : undefined;
  const sharding = zero < 2 ? undefined : zero === 2 ? "optim_grads" : "optim_grads_params";
  return {
    "tensor-model-parallel-size": plan.tp,
    "pipeline-model-parallel-size": plan.pp,
    "context-parallel-size": plan.cp > 1 ? plan.cp : undefined,
    "cp-comm-type": exchanges[plan.contextExchange],
    "expert-model-parallel-size": plan.ep > 1 ? plan.ep : undefined,
    "expert-tensor-parallel-size": splitsExperts ? plan.etp : undefined,
    "moe-token-dispatcher-type": dispatchers[plan.dispatch],
    "moe-enable-deepep": plan.dispatch === "unique",
    "moe-expert-capacity-factor": plan.expertCapacity,
    "moe-pad-expert-input-to-capacity": plan.expertCapacity !== undefined,
    "moe-grouped-gemm": plan.groupedKernel,
    "overlap-moe-expert-parallel-comm": plan.overlapExpertParallel,
    "cuda-graph-impl": graph,
    "cuda-graph-scope": scope,
    "optimizer-cpu-offload": plan.offload === "optimizer",
    "use-precision-aware-optimizer": plan.momentPrecision !== undefined,
    "exp-avg-dtype": plan.momentPrecision,
    "exp-avg-sq-dtype": plan.momentPrecision,
    "use-tp-pp-dp-mapping": legal && swapped,
    "pipeline-model-parallel-layout": layoutOf(plan, model.prediction),
    "account-for-embedding-in-pipeline-split": plan.accountForEmbedding,
    "account-for-loss-in-pipeline-split": plan.accountForLoss,
    "num-virtual-stages-per-pipeline-rank": plan.vpp > 1 ? plan.vpp : undefined,
    "micro-batch-size": plan.microbatch,
    "global-batch-size": plan.globalBatch,
    "seq-length": plan.sequence,
    "sequence-parallel": plan.sequenceParallel,
    "no-scatter-gather-tensors-in-pipeline":
      !plan.scatterGather && plan.tp > 1 && !plan.sequenceParallel,
    "recompute-granularity": granularity,
    "recompute-modules": experts ? "moe" : undefined,
    "recompute-method":
      recompute !== "full" ? undefined : recomputeLayers === undefined ? "uniform" : "block",
    "recompute-num-layers": recompute === "full" ? (recomputeLayers ?? 1) : undefined,
    bf16: precision === "bf16",
    fp16: precision === "fp16",
    "accumulate-allreduce-grads-in-fp32": precision === "fp16" && plan.gradientPrecision === "fp32",
    "use-distributed-optimizer": zero === 1,
    "use-megatron-fsdp": zero > 1,
    "data-parallel-sharding-strategy": sharding,
    "attention-backend": plan.flashAttention ? "flash" : "unfused",
    "no-masked-softmax-fusion": !plan.fusedSoftmax,
    "no-rope-fusion": plan.fusedRotary === false,
    "fp8-format": plan.matrixPrecision === "fp8" ? "hybrid" : undefined,
    "hidden-dropout": plan.dropout,
    "attention-dropout": plan.dropout,
    "overlap-grad-reduce": plan.overlapDataParallel,
    "tp-comm-overlap": plan.overlapTensorParallel,
    "no-overlap-p2p-communication": plan.vpp > 1 && !plan.overlapPointToPoint,
  };
}

/** A layout says stages that are not even; prediction layers stand on the last. */
function layoutOf(plan: Plan, prediction: number): string | undefined {
  const { stageLayers, pp, vpp } = plan;
  if (stageLayers === undefined) return undefined;
  const last = stageLayers.length - 1;
  const stages = stageLayers.map((n, i) => {
    const layers = "t".repeat(n);
    const end = i === last ? `${"m".repeat(prediction)}L` : "";
    return `${i === 0 ? "E" : ""}${layers}${end}`;
  });
  return printLayout({ ranks: pp, chunks: vpp, stages });
}

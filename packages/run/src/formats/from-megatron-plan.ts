/** The plan in Megatron-LM's command line. */
import { TriremeError } from "@trireme/core";
import { parseLayout } from "@trireme/schedulers";
import { present } from "./interchange.ts";
import type { Refuse } from "./megatron-experts.ts";
import type { OptionList } from "./option-list.ts";

/** Degrees, batch and options. */
export function planOf(o: OptionList, refuse: Refuse): unknown {
  const tp = o.number("--tensor-model-parallel-size") ?? 1;
  const pp = o.number("--pipeline-model-parallel-size") ?? 1;
  const layout = layoutOf(o, pp, refuse);
  const vpp = layout === undefined ? chunksOf(o, pp) : layout.vpp;
  const sequenceParallel = o.flag("--sequence-parallel");
  const precision = o.flag("--bf16") ? "bf16" : o.flag("--fp16") ? "fp16" : "fp32";
  const inFull = o.flag("--accumulate-allreduce-grads-in-fp32");
  const overlapSends = !o.flag("--no-overlap-p2p-communication");
  const scattered = !o.flag("--no-scatter-gather-tensors-in-pipeline");
  return present({
    tp,
    pp,
    cp: o.number("--context-parallel-size"),
    contextExchange: exchangeOf(o, refuse),
    ep: o.number("--expert-model-parallel-size"),
    etp: o.number("--expert-tensor-parallel-size"),
    dispatch: dispatchOf(o, refuse),
    expertCapacity: capacityOf(o, refuse),
    vpp,
    stageLayers: layout?.stageLayers,
    accountForEmbedding: o.flag("--account-for-embedding-in-pipeline-split") || undefined,
    accountForLoss: o.flag("--account-for-loss-in-pipeline-split") || undefined,
    order: o.flag("--use-tp-pp-dp-mapping") ? ["tp", "cp", "pp", "dp"] : undefined,
    groupedKernel: o.flag("--moe-grouped-gemm") || undefined,
    cudaGraphs: graphsOf(o, refuse),
    momentPrecision: momentsOf(o, refuse),
    offload: o.flag("--optimizer-cpu-offload") ? "optimizer" : undefined,
    overlapExpertParallel: o.flag("--overlap-moe-expert-parallel-comm") || undefined,
    microbatch: o.number("--micro-batch-size"),
    // Without it, one microbatch a replica, whose number only the launcher knows.
    globalBatch: o.number("--global-batch-size"),
    sequence: o.number("--seq-length"),
    schedule: vpp === undefined ? "1f1b" : "interleaved",
    sequenceParallel,
    scatterGather: scattered && tp > 1 && !sequenceParallel,
    ...recomputeOf(o, refuse),
    precision,
    // Megatron turns it on by itself for bf16.
    gradientPrecision: precision === "fp16" && !inFull ? "fp16" : "fp32",
    zero: zeroOf(o, refuse),
    flashAttention: attentionOf(o),
    fusedSoftmax: !o.flag("--no-masked-softmax-fusion"),
    fusedRotary: o.flag("--no-rope-fusion") ? false : undefined,
    matrixPrecision: matrixPrecisionOf(o, refuse),
    dropout: dropoutOf(o, refuse),
    overlapDataParallel: o.flag("--overlap-grad-reduce"),
    overlapTensorParallel: o.flag("--tp-comm-overlap"),
    overlapPointToPoint: vpp !== undefined && overlapSends,
  });
}

function chunksOf(o: OptionList, pp: number): number | undefined {
  const chunks = o.number("--num-virtual-stages-per-pipeline-rank");
  const layersOfChunk = o.number("--num-layers-per-virtual-pipeline-stage");
  const layers = o.number("--num-layers");
  if (chunks !== undefined) return chunks > 1 ? chunks : undefined;
  if (layersOfChunk === undefined || layers === undefined) return undefined;
  const ends = [
    "--account-for-embedding-in-pipeline-split",
    "--account-for-loss-in-pipeline-split",
  ];
  return (layers + ends.filter((end) => o.flag(end)).length) / (pp * layersOfChunk);
}

/** Both moments alike, in 32 bits unless the optimizer is the one that knows others. */
function momentsOf(o: OptionList, refuse: Refuse): unknown {
  const aware = o.flag("--use-precision-aware-optimizer");
  const [first, second] = ["--exp-avg-dtype", "--exp-avg-sq-dtype"].map((name) => o.text(name));
  if (!aware || (first === undefined && second === undefined)) return undefined;
  if (first === second && (first === "fp32" || first === "bf16")) return first;
  return refuse("--exp-avg-dtype", first ?? "fp32", "both moments alike, in fp32 or bf16");
}

/** "block" recomputes the first layers of each stage, "uniform" groups of so many. */
function recomputeOf(o: OptionList, refuse: Refuse): object {
  const granularity =
    o.text("--recompute-granularity") ?? (o.flag("--recompute-activations") ? "selective" : "none");
  const method = o.text("--recompute-method") ?? "uniform";
  const layers = o.number("--recompute-num-layers") ?? 1;
  const modules = o.text("--recompute-modules");
  if (granularity === "selective" && modules === "moe") return { recompute: "experts" };
  if (modules !== undefined && modules !== "core_attn") {
    refuse("--recompute-modules", modules, "only core_attn or moe alone");
  }
  if (granularity !== "full") return { recompute: granularity };
  if (method === "block") return { recompute: "full", recomputeLayers: layers };
  if (method !== "uniform" || layers !== 1) {
    const reason = "only every layer by itself (uniform 1), or the first ones (block)";
    refuse("--recompute-method", `${method} ${layers}`, reason);
    return {};
  }
  return { recompute: "full" };
}

function layoutOf(
  o: OptionList,
  pp: number,
  refuse: Refuse,
): { readonly vpp: number | undefined; readonly stageLayers: readonly number[] } | undefined {
  const text = o.text("--pipeline-model-parallel-layout");
  if (text === undefined) return undefined;
  try {
    const { stages, chunks } = parseLayout(text, { ranks: pp });
    const stageLayers = stages.map((letters) => letters.split("t").length - 1);
    return { vpp: chunks > 1 ? chunks : undefined, stageLayers };
  } catch (error) {
    if (!(error instanceof TriremeError)) throw error;
    return refuse("--pipeline-model-parallel-layout", text, error.message);
  }
}

function exchangeOf(o: OptionList, refuse: Refuse): string | undefined {
  const type = o.text("--cp-comm-type") ?? "p2p";
  if (type === "p2p") return undefined;
  if (type === "all_gather") return "all-gather";
  return type === "a2a"
    ? "all-to-all"
    : refuse("--cp-comm-type", type, "only p2p, all_gather and a2a");
}

/** The dispatcher `flex` sends a token once to a rank. */
function dispatchOf(o: OptionList, refuse: Refuse): string | undefined {
  const type = o.text("--moe-token-dispatcher-type");
  const deep = o.flag("--moe-enable-deepep");
  if (type === undefined || type === "alltoall") return undefined;
  if (type === "allgather") return "all-gather";
  if (type === "flex") {
    if (!deep) refuse("--moe-token-dispatcher-type", type, "is read as with --moe-enable-deepep");
    return "unique";
  }
  return refuse("--moe-token-dispatcher-type", type, "only alltoall, allgather and flex");
}

function capacityOf(o: OptionList, refuse: Refuse): number | undefined {
  const capacity = o.number("--moe-expert-capacity-factor");
  const padded = o.flag("--moe-pad-expert-input-to-capacity");
  if (capacity !== undefined && !padded) {
    refuse("--moe-expert-capacity-factor", capacity, "experts are padded to it as well");
  }
  return capacity;
}

function graphsOf(o: OptionList, refuse: Refuse): string | undefined {
  const older = o.flag("--enable-cuda-graph") || o.flag("--external-cuda-graph");
  const implementation = o.text("--cuda-graph-impl") ?? (older ? "local" : "none");
  const scope = o.text("--cuda-graph-scope");
  if (implementation === "none") return undefined;
  if (scope === "moe_router") return "routing";
  if (scope !== undefined && scope !== "full" && scope !== "full_iteration") {
    return refuse("--cuda-graph-scope", scope, "only full_iteration and moe_router");
  }
  return "all";
}

function matrixPrecisionOf(o: OptionList, refuse: Refuse): string | undefined {
  const format = o.text("--fp8-format");
  if (format === undefined) return undefined;
  return format === "hybrid" ? "fp8" : refuse("--fp8-format", format, "only hybrid");
}

function zeroOf(o: OptionList, refuse: Refuse): number | undefined {
  const strategy = o.text("--data-parallel-sharding-strategy");
  const stages = ["no_shard", "optim", "optim_grads", "optim_grads_params"];
  if (o.flag("--use-megatron-fsdp") && strategy !== undefined) {
    const stage = stages.indexOf(strategy);
    return stage >= 0 ? stage : refuse("--data-parallel-sharding-strategy", strategy, "unknown");
  }
  return o.flag("--use-distributed-optimizer") ? 1 : 0;
}

/** The backend `auto`, the default, takes flash or fused attention where there is one. */
function attentionOf(o: OptionList): boolean {
  const backend = o.text("--attention-backend") ?? "auto";
  return o.flag("--use-flash-attn") || !["unfused", "local"].includes(backend);
}

function dropoutOf(o: OptionList, refuse: Refuse): number | undefined {
  const hidden = o.number("--hidden-dropout") ?? 0.1;
  const attention = o.number("--attention-dropout") ?? 0.1;
  if (hidden === attention) return hidden;
  return refuse(
    "--hidden-dropout",
    `${hidden}, attention ${attention}`,
    "only one dropout for both",
  );
}

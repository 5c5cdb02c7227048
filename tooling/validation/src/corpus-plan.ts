/** The model and the plan of a corpus row, or what keeps it from being described. */
import { type ModelOptions, type PlanOptions } from "@trireme/workload";
import { adapterPlan, packedPlan } from "./adapter-scripts.ts";
import { bridgePlan, libraryPlan } from "./bridge-recipes.ts";
import { isHybrid } from "./corpus-hybrid.ts";
import { latentOf, modelOf, windowOf } from "./corpus-model.ts";
import { type CorpusRow, number, object, text } from "./corpus-row.ts";
import { goldenDropout } from "./golden-tests.ts";
import { densePlan, nemoPlan } from "./dgxc-scripts.ts";

/** What the row trains and how; a string says why it is not described. */
export interface Described {
  readonly model: ModelOptions;
  readonly plan: PlanOptions;
}

/** Describes a row. A missing field comes back as "missing: field", a kind of work that is not covered by its name. */
export function describe(row: CorpusRow): Described | string {
  const model = modelOf(row);
  if (typeof model === "string") return model;
  const plan = planOf(row);
  if (typeof plan === "string") return plan;
  return notCovered(row) ?? { model, plan };
}

/** Work that the estimator does not know. */
function notCovered(row: CorpusRow): string | undefined {
  const attention = text(row.model, "attn");
  const known = latentOf(attention) ?? windowOf(attention);
  if (attention !== "" && known === undefined && !isHybrid(row)) {
    return `not covered: attention ${attention}`;
  }
  if (number(row.model, "encoder_seq") !== undefined) return "not covered: encoders";
  if (text(row.parallel, "cpu_offload") === "true") return "not covered: offloading";
  return undefined;
}

/** "capacity factor 2": what an expert takes at most, and is padded to. */
function capacity(routing: string): Pick<PlanOptions, "expertCapacity"> {
  const factor = /capacity factor (\d+(\.\d+)?)/.exec(routing)?.[1];
  return factor === undefined ? {} : { expertCapacity: Number(factor) };
}

/** What a row records in graphs; Megatron-Bridge's performance recipes with experts do so with routers. */
function graphs(row: CorpusRow): "none" | "routing" | "all" {
  const stated = JSON.stringify(row.parallel["cuda_graph"] ?? "");
  if (/full iteration/.test(stated)) return "all";
  if (/moe_router/.test(stated)) return "routing";
  return row.dataset === "mbridge" ? "routing" : "none";
}

/** Expert parallelism; who states none trains every expert on every replica. */
function expertPlan(
  row: CorpusRow,
  tp: number,
): Pick<
  PlanOptions,
  | "ep"
  | "etp"
  | "dispatch"
  | "groupedKernel"
  | "cudaGraphs"
  | "overlapExpertParallel"
  | "expertCapacity"
> {
  if (object(row.model, "moe") === undefined) return {};
  const f = row.parallel;
  const stated = number(f, "etp");
  const overlap = text(f, "overlap");
  // AutoModel's table leaves the column out; its gptoss_20b_te_deepep.yaml and gptoss_120b_te_deepep.yaml say all devices.
  const spread = row.id.startsWith("automodel-gpt-oss");
  return {
    ep: spread ? (number(row.hardware, "num_gpus") ?? 1) : (number(f, "ep") ?? 1),
    // Megatron-LM splits experts as the rest unless told otherwise; Megatron-Bridge's recipes tell it.
    etp: stated ?? (isBridge(row) ? 1 : tp),
    overlapExpertParallel:
      /a2a overlap|dispatch\/combine overlapped/.test(overlap) && !/off|per recipe/.test(overlap),
    // Megatron-Bridge's performance recipes dispatch by DeepEP, or HybridEP on NVLink racks.
    dispatch:
      row.dataset === "mbridge" ||
      /deepep|hybridep/.test(text(f, "moe_dispatcher") + text(f, "kernels"))
        ? "unique"
        : "all-to-all",
    // torchao trains experts by torch._grouped_mm.
    groupedKernel: row.dataset === "torchtitan",
    cudaGraphs: graphs(row),
    ...capacity(text(f, "moe_routing")),
  };
}

function isBridge(row: CorpusRow): boolean {
  return row.dataset === "mbridge" || text(row.parallel, "framework").includes("megatron-bridge");
}

function planOf(row: CorpusRow): PlanOptions | string {
  const f = row.parallel;
  const devices = number(row.hardware, "num_gpus");
  const globalBatch = number(f, "gbs");
  const microbatch = number(f, "mbs");
  if (devices === undefined) return "missing: num_gpus";
  if (globalBatch === undefined) return "missing: gbs";
  if (microbatch === undefined) return "missing: mbs";
  // A product of two degrees that are not told apart.
  if ((number(f, "tp_x_cp") ?? 1) > 1 && number(f, "tp") === undefined) return "missing: tp, cp";
  const tp = number(f, "tp") ?? 1;
  const pp = number(f, "pp") ?? 1;
  const cp = number(f, "cp") ?? 1;
  const vpp = pp > 1 ? (number(f, "vpp") ?? 1) : 1;
  const width = tp * pp * cp;
  if (devices % width !== 0)
    return `refused: tp × pp × cp = ${width} does not divide ${devices} devices`;
  const dp = devices / width;
  const overlap = overlaps(row);
  return {
    tp,
    pp,
    cp,
    dp,
    vpp,
    ...countedEnds(row, pp * vpp),
    microbatch,
    globalBatch,
    // Megatron-LM trains experts under tensor parallelism with sequence parallelism only.
    sequenceParallel:
      text(f, "sp") === "true" || (tp > 1 && object(row.model, "moe") !== undefined),
    zero: zeroStage(row),
    ...copies(row),
    ...recomputation(row),
    flashAttention:
      text(f, "transformer_impl") !== "local" &&
      !/unfused|fused softmax|megatron-lm default|torch \(/.test(text(f, "attention_impl")),
    ...goldenDropout(row),
    ...flashGeneration(row),
    ...precisions(text(f, "precision")),
    ...conventions(text(f, "framework")),
    ...densePlan(row),
    ...fusion(row),
    ...libraryPlan(row),
    ...overlap,
    ...expertPlan(row, tp),
    ...(object(row.model, "moe") === undefined ? {} : { ...bridgePlan(row), ...nemoPlan(row) }),
    ...packedPlan(row),
    ...adapterPlan(row),
  };
}

/**
 * Megatron-Core refuses layers that do not divide over the stages. Where they do with embedding and loss counted, that is
 * what its recipes say: Megatron-Bridge's and NeMo's of Llama 3.1 405B, Megatron-MoE-ModelZoo's of Qwen3-235B.
 */
function countedEnds(
  row: CorpusRow,
  stages: number,
): Pick<PlanOptions, "accountForEmbedding" | "accountForLoss"> {
  const layers = number(row.model, "layers") ?? 0;
  const counted = layers % stages !== 0 && (layers + 2) % stages === 0;
  return counted ? { accountForEmbedding: true, accountForLoss: true } : {};
}

/** NVIDIA's and JAX's stacks hide what they can by default; others do what they say. */
function overlaps(
  row: CorpusRow,
): Pick<PlanOptions, "overlapDataParallel" | "overlapTensorParallel" | "overlapPointToPoint"> {
  const stated = text(row.parallel, "overlap");
  const framework = text(row.parallel, "framework");
  const modern =
    /nemo|bridge|maxtext|paxml|megatron-core/.test(framework) ||
    /nemo|recipe default|xla/.test(stated);
  const none = stated.startsWith("none (") || stated.includes("commit 285068c");
  const data = !none && (modern || /prefetch|grad|dp/.test(stated) || sharded(row));
  const tensor = !none && modern && !/tp_comm_overlap=(false|0)/.test(stated);
  return {
    overlapDataParallel: data,
    // MegaScale says of its rows "TP/PP/DP overlap" (§3.2).
    overlapTensorParallel: tensor || /asynctp|tp\/pp/.test(stated),
    overlapPointToPoint: !none && (modern || stated.includes("tp/pp")),
  };
}

function sharded(row: CorpusRow): boolean {
  const fsdp = text(row.parallel, "fsdp");
  return fsdp !== "" && fsdp !== "false";
}

/** torchtitan and AutoModel shard by PyTorch's FSDP2, parameter by parameter. */
function copies(row: CorpusRow): Pick<PlanOptions, "gatheredCopies"> {
  const second = row.dataset === "torchtitan" || text(row.parallel, "framework").includes("fsdp2");
  return second && zeroStage(row) === 3 ? { gatheredCopies: true } : {};
}

function zeroStage(row: CorpusRow): 0 | 1 | 2 | 3 {
  const stage = text(row.parallel, "zero_stage");
  if (text(row.parallel, "fsdp") === "shard_grad_op") return 2;
  if (stage.startsWith("3") || (stage === "" && sharded(row))) return 3;
  if (stage.startsWith("2") || stage.startsWith("fsdp")) return 2;
  return stage.startsWith("1") ? 1 : 0;
}

function recomputation(row: CorpusRow): Pick<PlanOptions, "recompute" | "recomputeLayers"> {
  const stated = text(row.parallel, "recompute");
  const layers = number(row.model, "layers") ?? 0;
  if (/every 2nd/.test(stated)) return { recompute: "full", recomputeLayers: layers >> 1 };
  if (/fraction of blocks/.test(stated)) {
    // Recomputing a block costs its forward again, a third of its products.
    const [hfu, mfu] = [number(row.measured, "hfu"), number(row.measured, "mfu")];
    const share = hfu === undefined || mfu === undefined ? 0 : Math.min(1, 3 * (hfu / mfu - 1));
    return { recompute: "full", recomputeLayers: Math.round(layers * share) };
  }
  if (stated.startsWith("full")) return { recompute: "full" };
  // MaxText's policies: "minimal" keeps what weights are multiplied with and computes attention again, "save_dot_except_..._ffn1" one
  // product of four more.
  if (stated === "minimal") return { recompute: "selective" };
  if (stated.startsWith("save_dot_except")) return { recompute: "operators" };
  if (stated.endsWith("selective:moe")) return { recompute: "experts" };
  if (/moe_act|layernorm|norm,act/.test(stated)) return { recompute: "rematerialise" };
  if (/selective \((per-)?op|selective op/.test(stated)) return { recompute: "operators" };
  return /selective( \(attention core\)|:core_attn|\? \(not stated\))?$/.test(stated)
    ? { recompute: "selective" }
    : {};
}

function precisions(stated: string): Partial<PlanOptions> {
  const pure = stated.includes("mp=pure") || stated === "bf16 fsdp2 mixed precision";
  const gradients = pure ? ({ gradientPrecision: "bf16" } as const) : {};
  const base = {
    precision: stated.startsWith("fp16") ? "fp16" : stated.startsWith("fp32") ? "fp32" : "bf16",
    ...gradients,
  } as const;
  if (/nvfp4|fp4/.test(stated)) return { ...base, matrixPrecision: "fp4" };
  if (stated.startsWith("int8")) return { ...base, matrixPrecision: "int8" };
  return /fp8|float8/.test(stated) ? { ...base, matrixPrecision: "fp8" } : base;
}

/** Frameworks that write layers from elementary operations; "rmsnorm kernel" is said where there is one. */
function fusion(
  row: CorpusRow,
): Pick<
  PlanOptions,
  "fusedSoftmax" | "fusedNorm" | "fusedElementwise" | "overlapGradientProducts"
> {
  const norm = text(row.parallel, "norm_impl");
  const framework = text(row.parallel, "framework");
  const eager =
    /aa-scaling|internevo|fsdp|deepspeed/.test(framework) ||
    ["llmfoundry", "torchtitan"].includes(row.dataset);
  const compiled = text(row.parallel, "compile") === "true";
  return {
    fusedSoftmax: !text(row.parallel, "attention_impl").startsWith("torch"),
    fusedNorm: norm === "" ? !eager || compiled : !norm.startsWith("torch"),
    fusedElementwise: !eager || compiled,
    overlapGradientProducts: !/aa-scaling|internevo|deepspeed/.test(framework),
  };
}

/** Generation of the attention kernels; PyTorch's own are FlashAttention 2. */
function flashGeneration(row: CorpusRow): Pick<PlanOptions, "flashVersion"> {
  const stated = text(row.parallel, "attention_impl");
  if (/triton|flash-attn-1/.test(stated)) return { flashVersion: 1 };
  return /flash-attn|sdpa|fa2/.test(stated) ? { flashVersion: 2 } : {};
}

/** What a framework does unless told otherwise, by its own documentation or the paper that measured it. */
function conventions(framework: string): Partial<PlanOptions> {
  // Aleph Alpha's "scaling": gradients in 16 bits, summed in 32 on every replica before ZeRO takes its share
  // (optimizer.py, allreduce.py); logits gathered before the loss.
  if (framework.startsWith("aa-scaling")) {
    return {
      gradientPrecision: "bf16",
      reductionPrecision: "fp32",
      gradientExchange: "all-reduce",
      vocabParallelLoss: false,
    };
  }
  // Megatron-LM's loss is of elementary operations in place (tensor_parallel/cross_entropy.py) without
  // --cross-entropy-loss-fusion; what Pai's patch of it passes is not stated.
  if (/^megatron-(lm|deepspeed)/.test(framework) && !framework.includes("pai")) {
    return { fusedLoss: false };
  }
  // NeMo's performance recipes set grad_reduce_in_fp32 to false.
  return /^nemo|bridge/.test(framework) ? { gradientPrecision: "bf16" } : {};
}

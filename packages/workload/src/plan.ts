/**
 * A plan is how a model is split and run: the degrees of tensor, pipeline and data parallelism, the
 * batch, and the choices that trade memory, arithmetic and communication. Its rules are those of
 * Megatron-LM (SC'21, arXiv 2104.04473, sections 2 and 3): the product of the degrees is the number
 * of ranks, and every split divides what it splits.
 */
import type { Model } from "./model.ts";
import { type Pipelines, withDegrees } from "./pipelines.ts";
import { checkPlan, type pipelineSchedules } from "./plan-rules.ts";

/**
 * A pipeline schedule by its name in `@trireme/schedulers`. zb-v, v-half, v-min and dualpipe-v have
 * two chunks a rank; chimera and dualpipe run a second copy of the model's stages the other way.
 */
export type PipelineSchedule = (typeof pipelineSchedules)[number];

/** How a model is split and run. Degrees and counts are positive integers. */
export interface Plan {
  /** Tensor-parallel ranks: each layer's matrices and heads are split over them. */
  readonly tp: number;
  /** Pipeline-parallel ranks. */
  readonly pp: number;
  /** Data-parallel replicas. */
  readonly dp: number;
  /** Context-parallel ranks: each sample's tokens are split over them, and attention exchanges keys and values. */
  readonly cp: number;
  /**
   * How: keys and values go round while attention works, are gathered before it, or heads are split instead of tokens
   * (Ulysses, arXiv 2309.14509).
   */
  readonly contextExchange: "ring" | "all-gather" | "all-to-all";
  /** Expert-parallel ranks: routed experts are dealt out to them. Folded into tp × cp × dp (arXiv 2504.14960). */
  readonly ep: number;
  /** Expert-tensor-parallel ranks: each routed expert's matrices are split over them. */
  readonly etp: number;
  /**
   * How tokens reach experts: once for each of theirs, once for each rank that holds some of theirs (DeepEP),
   * or all of them to all ranks of the group (MegaScale-MoE §3.2).
   */
  readonly dispatch: "all-to-all" | "unique" | "all-gather";
  /**
   * In what rows travel to experts and back, gradients too; left out, `precision`. In fp8 they are E4M3 with
   * scales of their own, and sums are in fp32 (MegaScale-MoE §5).
   */
  readonly dispatchPrecision?: "fp32" | "bf16" | "fp8";
  /**
   * Rows of an expert in multiples of an even share, padded to it, the rest dropped (GShard); left out, none is
   * dropped.
   */
  readonly expertCapacity?: number;
  /** Chunks of the model on each pipeline rank ("virtual pipeline"); 1 without interleaving. */
  readonly vpp: number;
  /** Samples in one microbatch. */
  readonly microbatch: number;
  /** Samples in one step, over all replicas. */
  readonly globalBatch: number;
  /** Tokens in one sample. */
  readonly sequence: number;
  /**
   * Tokens of the document that a token is in, on average over the tokens, where samples are packed from several and
   * attention stays within each (Llama 3, arXiv 2407.21783 §3.2); left out, a sample is one.
   */
  readonly document?: number;
  readonly schedule: PipelineSchedule;
  /** Transformer layers of each stage in model order, 0 or more; left out, they are spread evenly. */
  readonly stageLayers?: readonly number[];
  /**
   * The embedding counts as a layer where layers are spread, so that the first stage has one less of them
   * (Megatron-LM's account_for_embedding_in_pipeline_split); it may be left with none.
   */
  readonly accountForEmbedding: boolean;
  /** So does the head with its loss, on the last stage (account_for_loss_in_pipeline_split). */
  readonly accountForLoss: boolean;
  /**
   * Pipelines that differ in stages and widths; left out, all are alike. Where they are here, tp is the
   * widest stage, pp the most stages, dp their number.
   */
  readonly pipelines?: Pipelines;
  /** Samples of each of these pipelines in one step; left out, an even share. */
  readonly pipelineBatches?: readonly number[];
  /** Norms, dropout and residuals split over the tensor-parallel ranks by sequence (arXiv 2205.05198). */
  readonly sequenceParallel: boolean;
  /** Without sequence parallelism: a boundary crosses the network once, split over tp (SC'21 §4.1). */
  readonly scatterGather: boolean;
  /**
   * What the backward pass computes again: nothing, the attention core, whole layers, or ("operators",
   * torchtitan's operator policy) everything but attention and every other product, or ("rematerialise",
   * MegaScale-MoE §4.1) norms, activations and the gathered inputs of products, but no product, or ("experts",
   * Megatron-LM's module moe) whole blocks of experts with their exchanges, and nothing else.
   */
  readonly recompute: "none" | "selective" | "operators" | "rematerialise" | "experts" | "full";
  /** First layers of each stage that are recomputed, the rest kept; left out, all. */
  readonly recomputeLayers?: number;
  /** What waits in host memory: nothing, or the optimizer's state with its update on the host (arXiv 2101.06840). */
  readonly offload: "none" | "optimizer";
  /** Mesh axes, the one whose ranks are neighbours first. */
  readonly order: readonly PlanAxis[];
  /**
   * Weights and activations; 16-bit training keeps 32-bit master weights and, unless `momentPrecision` says otherwise,
   * moments.
   */
  readonly precision: "fp32" | "bf16" | "fp16";
  /**
   * Matrix products of the layers where not `precision`: quantised operands, results in `precision`; "int8" on TPUs
   * (AQT).
   */
  readonly matrixPrecision?: "fp8" | "int8" | "fp4";
  /** Gradient accumulation and reduction. */
  readonly gradientPrecision: "fp32" | "bf16" | "fp16";
  /**
   * Weights that ZeRO 3 gathers are copied from the message's buffer into each parameter (PyTorch's FSDP2,
   * foreach_all_gather_copy_out); left out, they are used where they arrive.
   */
  readonly gatheredCopies?: boolean;
  /**
   * Both moments of Adam where not 32 bits (DeepSeek-V3, arXiv 2412.19437 §3.3.2; Megatron-LM's precision-aware
   * optimizer).
   */
  readonly momentPrecision?: "fp32" | "bf16";
  /** What gradients are summed in over the replicas where not `gradientPrecision` (FSDP's reduce_dtype). */
  readonly reductionPrecision?: "fp32" | "bf16" | "fp16";
  /**
   * How ZeRO 1 and 2 sum gradients: left out, each replica gets the sum of its share; "all-reduce", every replica
   * all of it, at twice the traffic (DeepSpeed's reduce_scatter false, Aleph Alpha's scaling).
   */
  readonly gradientExchange?: "reduce-scatter" | "all-reduce";
  /** What the replicas share out: 1 optimizer state, 2 and gradients, 3 and weights (arXiv 1910.02054). */
  readonly zero: 0 | 1 | 2 | 3;
  /** Attention in tiles without a score matrix in memory, causal tiles skipped (arXiv 2205.14135). */
  readonly flashAttention: boolean;
  /**
   * Products of attention where not `precision`: on 8-bit operands, which are kept so for backward (Transformer
   * Engine's fp8_dot_product_attention).
   */
  readonly attentionPrecision?: "fp8";
  /**
   * In what the feed-forward block keeps the input of its activation where not `precision` (Transformer Engine's fp8
   * input store).
   */
  readonly activationPrecision?: "fp8";
  /** Generation of the flash attention kernels (FlashAttention 1, 2, 3); left out, the device's best. */
  readonly flashVersion?: 1 | 2 | 3;
  /**
   * Embedding and head split over the pipeline ranks too, in passes of their own between those of the layers: with two
   * barriers or one between the last stage's forward and backward (arXiv 2411.05288, Algorithms 1 and 2), or all ranks
   * at once ("interlaced", nnScaler); left out, the first stage has the embedding and the last the head.
   */
  readonly vocabulary?: "two-barriers" | "one-barrier" | "interlaced";
  /** Each tensor-parallel rank computes the loss over its part of the vocabulary; else logits are gathered. */
  readonly vocabParallelLoss: boolean;
  /** Plain attention's scaling, mask and softmax in one kernel; else as elementary operations. */
  readonly fusedSoftmax: boolean;
  /** RMSNorm in one kernel; else as the framework's elementary operations in 32 bits. */
  readonly fusedNorm: boolean;
  /** Activation, rotary embedding and loss in one kernel each; else as elementary operations. */
  readonly fusedElementwise: boolean;
  /**
   * Cross entropy in one kernel, or (false) as Megatron-LM's elementary operations in place (cross_entropy.py of
   * tensor_parallel), or as the framework's without `fusedElementwise`; left out, as `fusedElementwise`.
   */
  readonly fusedLoss?: boolean;
  /**
   * Rotary embedding in one kernel for queries and one for keys, in which latent attention's heads are put together
   * too; or (false) all that from elementary operations, as Megatron-LM does without `apply_rope_fusion`. Left out,
   * rotary embedding is as `fusedElementwise`, and heads are put together in one.
   */
  readonly fusedRotary?: boolean;
  /** The products of all experts of a rank in one kernel (CUTLASS, torch._grouped_mm); else a library call for each. */
  readonly groupedKernel: boolean;
  /**
   * What is launched from recorded CUDA graphs, without the framework's time: nothing, routers and permutations, or
   * all.
   */
  readonly cudaGraphs: "none" | "routing" | "all";
  /** Dropout probability of attention scores and residual branches; 0 for none. */
  readonly dropout: number;
  /** Gradient reduction and parameter gathering run behind backward and forward, not after them. */
  readonly overlapDataParallel: boolean;
  /** In backward, tensor-parallel collectives run beside the gradient products that do not wait for them. */
  readonly overlapGradientProducts: boolean;
  /** Tensor-parallel collectives are split up and run behind the matrix products beside them. */
  readonly overlapTensorParallel: boolean;
  /** Sends between stages run behind compute. */
  readonly overlapPointToPoint: boolean;
  /**
   * Dispatch and combine run behind the compute of another microbatch, or of other operators (DualPipe, MegaScale-MoE
   * §4.2).
   */
  readonly overlapExpertParallel: boolean;
}

/** The axes that ranks are laid out by. */
export type PlanAxis = "tp" | "cp" | "dp" | "pp";

/** What `definePlan` takes: the global batch, and whatever differs from the defaults. */
export type PlanOptions = Partial<Plan> & Pick<Plan, "globalBatch">;

/**
 * A plan for `model`, checked. Defaults: every degree 1, microbatch 1, the model's context as
 * sequence, bf16 with fp32 gradients, flash attention, 1F1B (interleaved when vpp > 1), fused kernels, and
 * Megatron-LM's overlap in backward, no other.
 * Throws TriremeError "PLAN": the rule, the numbers that break it, and the nearest legal value.
 */
export function definePlan(model: Model, options: PlanOptions): Plan {
  const o = withDegrees(options);
  const precision = o.precision ?? "bf16";
  const tp = o.tp ?? 1;
  const plan: Plan = {
    tp,
    pp: o.pp ?? 1,
    dp: o.dp ?? 1,
    cp: o.cp ?? 1,
    contextExchange: o.contextExchange ?? "ring",
    ep: o.ep ?? 1,
    etp: o.etp ?? (model.experts === undefined ? 1 : tp),
    dispatch: o.dispatch ?? "all-to-all",
    vpp: o.vpp ?? 1,
    microbatch: o.microbatch ?? 1,
    globalBatch: o.globalBatch,
    sequence: o.sequence ?? model.context,
    schedule: o.schedule ?? ((o.vpp ?? 1) > 1 ? "interleaved" : "1f1b"),
    accountForEmbedding: o.accountForEmbedding ?? false,
    accountForLoss: o.accountForLoss ?? false,
    sequenceParallel: o.sequenceParallel ?? false,
    scatterGather: o.scatterGather ?? false,
    recompute: o.recompute ?? "none",
    offload: o.offload ?? "none",
    order: o.order ?? ["tp", "cp", "dp", "pp"],
    precision,
    gradientPrecision: o.gradientPrecision ?? "fp32",
    zero: o.zero ?? 0,
    flashAttention: o.flashAttention ?? true,
    vocabParallelLoss: o.vocabParallelLoss ?? true,
    fusedSoftmax: o.fusedSoftmax ?? true,
    fusedNorm: o.fusedNorm ?? true,
    fusedElementwise: o.fusedElementwise ?? true,
    groupedKernel: o.groupedKernel ?? false,
    cudaGraphs: o.cudaGraphs ?? "none",
    dropout: o.dropout ?? 0,
    overlapDataParallel: o.overlapDataParallel ?? false,
    overlapGradientProducts: o.overlapGradientProducts ?? true,
    overlapTensorParallel: o.overlapTensorParallel ?? false,
    overlapPointToPoint: o.overlapPointToPoint ?? false,
    overlapExpertParallel: o.overlapExpertParallel ?? false,
    ...(o.document === undefined ? {} : { document: o.document }),
    ...(o.dispatchPrecision === undefined ? {} : { dispatchPrecision: o.dispatchPrecision }),
    ...(o.expertCapacity === undefined ? {} : { expertCapacity: o.expertCapacity }),
    ...(o.recomputeLayers === undefined ? {} : { recomputeLayers: o.recomputeLayers }),
    ...(o.stageLayers === undefined ? {} : { stageLayers: o.stageLayers }),
    ...(o.pipelines === undefined ? {} : { pipelines: o.pipelines }),
    ...(o.pipelineBatches === undefined ? {} : { pipelineBatches: o.pipelineBatches }),
    ...(o.flashVersion === undefined ? {} : { flashVersion: o.flashVersion }),
    ...(o.matrixPrecision === undefined ? {} : { matrixPrecision: o.matrixPrecision }),
    ...(o.attentionPrecision === undefined ? {} : { attentionPrecision: o.attentionPrecision }),
    ...(o.activationPrecision === undefined ? {} : { activationPrecision: o.activationPrecision }),
    ...(o.reductionPrecision === undefined ? {} : { reductionPrecision: o.reductionPrecision }),
    ...(o.gradientExchange === undefined ? {} : { gradientExchange: o.gradientExchange }),
    ...(o.vocabulary === undefined ? {} : { vocabulary: o.vocabulary }),
    ...(o.gatheredCopies === undefined ? {} : { gatheredCopies: o.gatheredCopies }),
    ...(o.momentPrecision === undefined ? {} : { momentPrecision: o.momentPrecision }),
    ...(o.fusedLoss === undefined ? {} : { fusedLoss: o.fusedLoss }),
    ...(o.fusedRotary === undefined ? {} : { fusedRotary: o.fusedRotary }),
  };
  checkPlan(model, plan);
  return plan;
}

/** Layers of a stage, from its first, that backward computes again. */
export function recomputedLayers(p: Plan, layers: number): number {
  return p.recompute === "none" ? 0 : Math.min(layers, p.recomputeLayers ?? layers);
}

/**
 * Barriers between the last stage's forward and backward where the vocabulary is split: for each, every rank holds one
 * microbatch more than under the schedule alone (arXiv 2411.05288 §5.1). 0 for an interlaced pipeline, which waits
 * instead.
 */
export function vocabularyBarriers(p: Pick<Plan, "vocabulary">): 0 | 1 | 2 {
  if (p.vocabulary === "two-barriers") return 2;
  return p.vocabulary === "one-barrier" ? 1 : 0;
}

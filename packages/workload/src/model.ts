/**
 * A model is what is computed, not how it is split: a transformer given by its shape. GPT form
 * (Radford et al. 2019; Brown et al. 2020) has learned positions, LayerNorm, GeLU, biases and tied
 * embeddings; Llama form (Touvron et al. 2023; Llama 3, 2024) rotary positions, RMSNorm, SwiGLU,
 * grouped-query attention, no biases, untied. Everything else is a difference from these; a pattern says
 * where layers are no such blocks but state-space layers, linear attention, or a half of one.
 */

/** A transformer. Counts are plain numbers; `source` says where they come from. */
export interface Model {
  readonly name: string;
  readonly layers: number;
  /** Width of the residual stream. */
  readonly hidden: number;
  /** Query heads. */
  readonly heads: number;
  /** Key and value heads: `heads` for multi-head, 1 for multi-query attention. */
  readonly kvHeads: number;
  /** Width of a head's queries and keys; without latent attention, of its values too. */
  readonly headDim: number;
  /** Width inside the feed-forward block; a gated activation computes two such projections, gate and up. */
  readonly ffn: number;
  readonly vocab: number;
  /** Longest sequence, tokens. */
  readonly context: number;
  readonly position: "learned" | "rotary" | "alibi" | "none";
  /** Rows of a learned position table beyond `context` (OPT: 2). */
  readonly extraPositions: number;
  /** Base of the rotary angles; no meaning with other positions. */
  readonly rotaryBase: number;
  /** Share of a head that is rotated, in (0, 1]. */
  readonly rotaryFraction: number;
  readonly norm: "layernorm" | "rmsnorm";
  /** What the norms add to the variance, or mean square. */
  readonly normEpsilon: number;
  /** LayerNorm adds a shift. */
  readonly normBias: boolean;
  /** Norms multiply by weights (not in OLMo 1). */
  readonly normWeights: boolean;
  /** Norms before each block, after it (BERT, OLMo 2), or both (Gemma 2 and 3). */
  readonly normPlacement: "pre" | "post" | "both";
  /** One block after the other, or attention and feed-forward beside each other on the same residual (GPT-J). */
  readonly block: "sequential" | "parallel";
  /** The two branches of a parallel block read the same normalised input (not in GPT-NeoX). */
  readonly sharedNorm: boolean;
  /** A norm before the head; post-norm models may have none (BERT). */
  readonly finalNorm: boolean;
  /** A norm after the embedding (BLOOM, BERT). */
  readonly embeddingNorm: boolean;
  /** Norm of queries and keys: per head with shared weights (Qwen 3), or over all heads (OLMo 2). */
  readonly qkNorm: "none" | "head" | "all";
  readonly activation: "gelu" | "relu" | "squared-relu" | "swiglu" | "geglu";
  /** What gate and up are cut to in front of a gated activation (gpt-oss: 7); 0 for no bound. */
  readonly activationClamp: number;
  /** Every linear layer has a bias. */
  readonly bias: boolean;
  /** The query, key and value projections have one although the others may not (Qwen 2). */
  readonly qkvBias: boolean;
  /** So for the attention's output projection (gpt-oss has one, GPT-J's feed-forward alone). */
  readonly outputBias: boolean;
  /** The output head has a bias (GPT-J, Phi-2). */
  readonly headBias: boolean;
  /** A learned logit per head joins the softmax (gpt-oss). */
  readonly attentionSinks: boolean;
  /** The output head reuses the token embedding. */
  readonly tied: boolean;
  /** Tokens attend to earlier ones only; an encoder's to all. */
  readonly causal: boolean;
  /** Rows of a table of segments that is added to the embedding (BERT: 2); 0 for none. */
  readonly segments: number;
  /** A square layer over the first token's state (BERT). */
  readonly pooler: boolean;
  /** Layers that attend within a window only. */
  readonly window?: Window;
  /** Keys and values are made from a latent vector (DeepSeek-V2, arXiv 2405.04434 §2.1). */
  readonly latent?: LatentAttention;
  /** A sigmoid gate, projected beside the queries, scales what attention gives (Qwen3-Next). */
  readonly attentionGate: boolean;
  /** Layers whose feed-forward block is a mixture of experts. */
  readonly experts?: Experts;
  /**
   * What each layer is, where not attention and a feed-forward block: `M` Mamba-2, `G` a gated delta net, `*` attention,
   * `W` attention within the window, `-` a dense feed-forward block, `E` experts. A letter is a layer ("MEM*E"); where
   * spaces part layers, a layer is one of the first four, one of the last two, or both ("GE GE GE *E"). Repeated until
   * all layers are named; a prediction module's form follows a slash ("ME*E/*E"), else it is the last layer's.
   */
  readonly pattern?: string;
  /** Layers `M` of the pattern. */
  readonly mamba?: Mamba;
  /** Layers `G` of the pattern. */
  readonly deltaNet?: DeltaNet;
  /** Multi-token prediction modules, each a layer more (DeepSeek-V3, arXiv 2412.19437 §2.2). */
  readonly prediction: number;
  /** What is trained beside frozen weights (LoRA, arXiv 2106.09685). */
  readonly adapter?: Adapter;
  /** What turns images or sounds into tokens, in front of the first layer. */
  readonly encoders: readonly Encoder[];
  readonly source: string;
}

/** Sliding-window attention. */
export interface Window {
  /** Tokens that a query sees, itself included. */
  readonly size: number;
  /** Every so many layers one, the last of them, attends to all (Gemma 2: 2, Gemma 3: 6); 0 for none. */
  readonly every: number;
}

/** Multi-head latent attention; `headDim` is nopeDim + ropeDim. */
export interface LatentAttention {
  /** Width of the queries' latent; 0 when queries are projected directly. */
  readonly queryRank: number;
  /** Width of the keys' and values' latent. */
  readonly keyValueRank: number;
  /** Part of a head without position. */
  readonly nopeDim: number;
  /** Rotated part of a head; its key is one for all heads. */
  readonly ropeDim: number;
  /** Width of a head's values. */
  readonly valueDim: number;
}

/** A state-space layer: Mamba-2 (Dao and Gu, arXiv 2405.21060, §7); its inner width is heads × headDim. */
export interface Mamba {
  readonly heads: number;
  /** Channels of a head. */
  readonly headDim: number;
  /** Numbers that a channel remembers. */
  readonly stateDim: number;
  /** Groups of heads that share B and C; what is normalised together. */
  readonly groups: number;
  /** Tokens that the causal convolution in front of the scan sees. */
  readonly convolution: number;
  /** The convolution has a bias. */
  readonly convolutionBias: boolean;
  /** Tokens that the scan multiplies at once (§6). */
  readonly chunk: number;
}

/** Linear attention by a gated delta rule (Yang et al., arXiv 2412.06464), in the form of Qwen3-Next. */
export interface DeltaNet {
  /** Heads of queries and of keys. */
  readonly keyHeads: number;
  readonly valueHeads: number;
  readonly keyDim: number;
  readonly valueDim: number;
  /** Tokens that the causal convolution in front of the rule sees. */
  readonly convolution: number;
  /** Tokens that the rule is applied to at once. */
  readonly chunk: number;
}

/** A mixture of experts. */
export interface Experts {
  /** Routed experts. */
  readonly count: number;
  /** Experts that a token is sent to (top-k). */
  readonly active: number;
  /** Width inside one expert. */
  readonly ffn: number;
  /** Width inside the expert that sees every token: that of one times their number; 0 for none. */
  readonly sharedFfn: number;
  /** A gate scales the shared expert's output (Qwen 2 MoE). */
  readonly sharedGate: boolean;
  /** First layers that are dense instead. */
  readonly denseLayers: number;
  /** Every so many layers one, the last of them, has experts (GLaM, Llama 4 Maverick: 2). */
  readonly every: number;
  /** The router has a bias that is trained with it (gpt-oss). */
  readonly routerBias: boolean;
  /** Experts are chosen by score plus a bias that balances them (DeepSeek-V3, §2.1.2): one number each. */
  readonly selectionBias: boolean;
}

/**
 * Matrices that an adapter may be added to. "qkv" and "gate-up" are one adapter for matrices side by side (Megatron-LM's
 * linear_qkv and linear_fc1), and take the place of one for each; "query-down" to "key-value-up" are latent attention's.
 */
export const adapterTargets = [
  "query",
  "key",
  "value",
  "qkv",
  "output",
  "gate",
  "up",
  "gate-up",
  "down",
  "query-down",
  "query-up",
  "key-value-down",
  "key-value-up",
] as const;

/** One of `adapterTargets`. */
export type AdapterTarget = (typeof adapterTargets)[number];

/** Low-rank adapters: W x + B A x with A [rank, in] and B [out, rank] trained, all else frozen. */
export interface Adapter {
  readonly rank: number;
  readonly targets: readonly AdapterTarget[];
  /**
   * How the frozen matrices of the layers are kept: training precision, as the operands of 8-bit products (Transformer
   * Engine's fp8 parameters), in int8, or NF4 (QLoRA, arXiv 2305.14314).
   */
  readonly base: "full" | "fp8" | "int8" | "nf4";
  /** Probability with which an adapter's input is dropped, element by element; 0 for none. */
  readonly dropout: number;
}

/** A transformer encoder whose output tokens stand in the decoder's sequence (ViT, arXiv 2010.11929; LLaVA). */
export interface Encoder {
  readonly modality: "image" | "video" | "audio";
  readonly layers: number;
  readonly hidden: number;
  readonly heads: number;
  readonly ffn: number;
  readonly activation: Model["activation"];
  readonly norm: Model["norm"];
  readonly bias: boolean;
  /** Numbers in one patch or frame before projection: 3 · 14² for 14-pixel patches. */
  readonly patch: number;
  /** Tokens of one sample that it encodes, over all its images. */
  readonly tokens: number;
  /** Tokens that attend to each other: those of one image or segment. */
  readonly span: number;
  /** Rows of its learned positions; 0 for rotary ones. */
  readonly positionRows: number;
  /** A norm before its first layer (CLIP). */
  readonly embeddingNorm: boolean;
  /** Encoded tokens that make one of the decoder's. */
  readonly merge: number;
  /** Inner widths of the projector between it and the decoder: [] is one matrix. */
  readonly projector: readonly number[];
  /** It is computed and not trained. */
  readonly frozen: boolean;
}

/** The activation multiplies two projections, gate and up. */
export function isGated(activation: Model["activation"]): boolean {
  return activation === "swiglu" || activation === "geglu";
}

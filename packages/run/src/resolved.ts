/** A run with nothing left to derive: what simulator, engine and command line read. */
import type { Seconds } from "@trireme/core";
import type { DropOptions, GroupLimit, Scoring } from "@trireme/moe-dispatch";
import type { Cluster } from "@trireme/topology";
import type { Model, Plan } from "@trireme/workload";
import type { Path } from "./problem.ts";

/** What is read, how it becomes tokens, and what is kept for validation. */
export interface ResolvedData {
  /** As written; a relative path is relative to the run file. */
  readonly path: string;
  readonly tokenizer: "character" | "byte";
  /** Share of the documents. */
  readonly validation: number;
  readonly seed: number;
}

/** The optimizer and its learning rate; steps count from 0. */
export interface ResolvedOptimizer {
  /** `lamb` has AdamW's moments, and moves each tensor by a share of its norm (You et al. 2020). */
  readonly kind: "adamw" | "lamb";
  readonly learningRate: number;
  readonly minimumLearningRate: number;
  /** Steps of linear warm-up. */
  readonly warmup: number;
  readonly schedule: "constant" | "cosine" | "linear" | "inverse-sqrt" | "wsd";
  /** Last steps in which `wsd` decays. */
  readonly decay: number;
  /** How `wsd` decays. */
  readonly decayShape: "linear" | "cosine" | "sqrt";
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
  readonly weightDecay: number;
  /** Largest norm of the gradient; 0 clips nothing. */
  readonly clip: number;
}

/** When the state is saved besides at the end, how many saves stay, and where. */
export interface ResolvedCheckpoint {
  /** Steps between saves. */
  readonly every?: number;
  /** Training time between saves. */
  readonly interval?: Seconds;
  readonly keep: number;
  readonly directory?: string;
}

/** The validation loss is measured every so many steps, over so many global batches. */
export interface ResolvedEvaluate {
  readonly every: number;
  readonly batches: number;
}

/** Text to generate when training ends. */
export interface ResolvedSample {
  readonly prompt: string;
  readonly tokens: number;
  readonly temperature: number;
  readonly seed: number;
}

/** What of the loss guard is stated; the rest has the guard's own defaults. */
export interface ResolvedGuard {
  readonly window?: number;
  readonly settle?: number;
  readonly factor?: number;
  readonly patience?: number;
  readonly reattempts?: number;
  readonly back?: number;
  readonly margin?: number;
  readonly limit?: number;
}

/** How routers choose experts and keep them busy. */
export interface ResolvedRouter {
  /**
   * How logits become weights. Default: sigmoid with a selection bias, else softmax, over the chosen
   * experts, or over all where one is chosen.
   */
  readonly scoring?: Scoring;
  /**
   * Coefficient of the balance loss over the global batch (Switch, 2021, eq. 4), whose tokens per
   * expert are those of the step before: a pipeline's first backward comes before its last forward.
   * Default 0.01, or 0 with a selection bias.
   */
  readonly balanceLoss?: number;
  /** Coefficient of the z-loss (ST-MoE, 2022, eq. 5); default 0. */
  readonly zLoss?: number;
  /** Factor on all weights (DeepSeek's routed scaling factor); default 1. */
  readonly scale?: number;
  /** Limits each token to the experts of a few groups (DeepSeek-V3, section 2.1.2). */
  readonly groups?: GroupLimit;
  /** What the selection bias moves by after a step (DeepSeek-V3, section 2.1.2); default 0.001. */
  readonly biasRate?: number;
  /** Whether experts at their capacity keep the first tokens, the default, or those of the largest weights. */
  readonly dropPolicy?: DropOptions["policy"];
  /** Groups of experts that share a capacity, as those of a device (MegaScale-MoE); default each by itself. */
  readonly capacityGroups?: number;
  /** Whose tokens are dropped by themselves, where there is a capacity; default each rank's of a microbatch. */
  readonly capacityParts?: CapacityParts;
}

/**
 * The parts of the global batch whose tokens are dropped by themselves where experts have a capacity:
 * those of a rank under this microbatch and these degrees. What is left out is as in the plan.
 */
export interface CapacityParts {
  /** Samples; a divisor of the plan's. */
  readonly microbatch?: number;
  /** Context-parallel ranks, which share out samples as the plan's `contextExchange` does. */
  readonly cp?: number;
  /** Tensor-parallel ranks with sequence parallelism. */
  readonly tp?: number;
}

/**
 * `wasm`: kernels in WebAssembly, the same bits everywhere. `fused`: WebAssembly with fused
 * multiply-adds, an error where the JavaScript engine has none. `native`: products of the system's
 * OpenBLAS, an error without, and `fused` for the rest where there is that. `auto`: the fastest that
 * there is of each.
 */
export type KernelChoice = "wasm" | "fused" | "native" | "auto";

/** Where the scale of an FP8 operand comes from. */
export type Fp8Scaling = "current" | "delayed" | "block";

/** What carries the run out, and by which arithmetic. */
export interface ResolvedEngine {
  readonly kind: "embedded";
  readonly kernels: KernelChoice;
  /** Of products in FP8 (`plan.matrixPrecision: fp8`); default current. */
  readonly fp8Scaling?: Fp8Scaling;
}

/** A value the file does not state, and where it comes from. */
export interface Derivation {
  readonly path: Path;
  readonly value: string | number | boolean;
  readonly from: string;
}

/** A run as it will be carried out. */
export interface ResolvedRun {
  readonly name: string;
  readonly model: Model;
  readonly cluster: Cluster;
  readonly plan: Plan;
  readonly data?: ResolvedData;
  readonly optimizer: ResolvedOptimizer;
  readonly steps: number;
  readonly seed: number;
  readonly checkpoint: ResolvedCheckpoint;
  readonly evaluate: ResolvedEvaluate;
  readonly guard?: ResolvedGuard;
  readonly router?: ResolvedRouter;
  readonly engine: ResolvedEngine;
  readonly sample?: ResolvedSample;
  /** What the file left out. */
  readonly derived: readonly Derivation[];
  /** Equal for runs that compute the same steps on the same data; see `fingerprint`. */
  readonly fingerprint: string;
}

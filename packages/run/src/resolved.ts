/** A run with nothing left to derive: what simulator, engine and command line read. */
import type { Seconds } from "@trireme/core";
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
  readonly engine: { readonly kind: "embedded" };
  readonly sample?: ResolvedSample;
  /** What the file left out. */
  readonly derived: readonly Derivation[];
  /** Equal for runs that compute the same steps on the same data; see `fingerprint`. */
  readonly fingerprint: string;
}

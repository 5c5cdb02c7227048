/** What the main thread and a rank's thread say to each other: one reply to each request, in order. */
import type { SharedMemory } from "@trireme/collectives";
import type { Model, Plan } from "@trireme/workload";
import type { GenerateOptions } from "./generate.ts";
import type { AdamWOptions } from "./optimizer.ts";
import type { RankStep } from "./rank.ts";
import type { StartGate } from "./start-gate.ts";

/** What a thread needs to become a rank. */
export interface RankSeed {
  readonly model: Model;
  readonly plan: Plan;
  readonly optimizer: AdamWOptions & { readonly clip: number };
  readonly seed: number;
  readonly rank: number;
  /** Shared memory through which ranks exchange messages. */
  readonly arena: SharedMemory;
  /** Where requests wait until all ranks have them. */
  readonly gate: StartGate;
  /** Whether each rank has a core to itself, and may look out for a message before it sleeps. */
  readonly ownCore: boolean;
  /** Longest wait for a peer. */
  readonly deadline: number;
}

/** A parameter with its optimizer state, copied out of a rank. */
export interface StoredParameter {
  readonly name: string;
  readonly dims: readonly number[];
  readonly value: Float32Array;
  readonly firstMoment: Float32Array;
  readonly secondMoment: Float32Array;
}

/** Batches are [globalBatch, sequence + 1] token ids in shared memory. */
export type Request =
  | {
      readonly kind: "train";
      readonly batch: Int32Array;
      readonly update: number;
      readonly learningRate: number;
    }
  | { readonly kind: "evaluate"; readonly batch: Int32Array }
  | { readonly kind: "generate"; readonly options: GenerateOptions }
  /** Parameters of the ranks that speak for them: the first replica, each tensor once. */
  | { readonly kind: "store" }
  | { readonly kind: "gradients" }
  | { readonly kind: "load"; readonly parameters: readonly StoredParameter[] };

/** A request and its number at the gate. */
export interface Turn {
  readonly turn: number;
  readonly request: Request;
}

export type Value =
  | { readonly kind: "ready"; readonly names: readonly string[]; readonly bytes: number }
  | ({ readonly kind: "train"; readonly spans: Float64Array } & RankStep)
  | { readonly kind: "evaluate"; readonly lossSum: number }
  | { readonly kind: "generate"; readonly tokens: Int32Array }
  | { readonly kind: "store"; readonly parameters: readonly StoredParameter[] }
  | {
      readonly kind: "gradients";
      readonly gradients: readonly { readonly name: string; readonly gradient: Float32Array }[];
    }
  | { readonly kind: "load" };

/** `code` tells a rank's own failure from one that it heard of from a peer. */
export interface Failure {
  readonly kind: "failure";
  readonly code: string;
  readonly message: string;
}

/** What a job generates, where and how, and the plan that its passes are priced by. */
import type { Bytes } from "@trireme/core";
import type { Cluster } from "@trireme/topology";
import type { Model, Plan, PlanOptions } from "@trireme/workload";
import type { Pricer } from "../pricer.ts";
import type { Speculation } from "./speculation.ts";

/** What is generated, where, and how. */
export interface InferenceOptions {
  readonly model: Model;
  readonly cluster: Cluster;
  /** Devices that share the model; 1 when left out. */
  readonly tp?: number;
  /** Devices that routed experts are spread over, each with sequences of its own; 1 when left out. */
  readonly ep?: number;
  /** Sequences at once, of each replica (of tp devices). */
  readonly batch: number;
  /** Tokens of each prompt, and tokens that are generated after it. */
  readonly prompt: number;
  readonly generated: number;
  /** bf16 when left out. */
  readonly precision?: Plan["precision"];
  /** Of matrix products and weights, where lower. */
  readonly matrixPrecision?: Plan["matrixPrecision"];
  /** Bytes of a key's or value's number; those of the precision when left out. */
  readonly cacheElement?: Bytes;
  /** Prompt tokens that the cache keeps after the prefill (SnapKV, arXiv 2404.14469); all when left out. */
  readonly cacheBudget?: number;
  readonly speculation?: Speculation;
  /** Kernels of the decode are launched from a graph; true when left out. */
  readonly graphs?: boolean;
  readonly pricer?: Pricer;
}

/** The new tokens of all sequences as the microbatch of a plan. */
export function planOptions(o: InferenceOptions, sequence: number): PlanOptions {
  const { tp = 1, ep = 1, batch, precision = "bf16", matrixPrecision } = o;
  return {
    tp,
    ep,
    dp: ep,
    sequence,
    microbatch: batch,
    globalBatch: batch * ep,
    precision,
    ...(matrixPrecision === undefined ? {} : { matrixPrecision }),
  };
}

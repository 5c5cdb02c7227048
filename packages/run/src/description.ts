/**
 * What a run file may say, as written: sections of plain data in which everything derivable may be
 * left out. `schema.ts` checks it, `resolve.ts` makes it whole.
 */
import type { DropOptions, Scoring } from "@trireme/moe-dispatch";
import type { ModelOptions, PipelineSchedule, Pipelines, Plan, PlanAxis } from "@trireme/workload";
import type { Fp8Scaling, KernelChoice } from "./resolved.ts";

/** Each field may be left out, and is read-only all the way down. */
type Written<T> = { readonly [K in keyof T]?: T[K] | undefined };

/** An architecture: a preset's name, or a preset with changes, or all of it. */
export interface ModelSection extends Written<Omit<ModelOptions, "source">> {
  readonly preset?: string | undefined;
}

/** One direction of a connection. */
export interface LinkSection {
  readonly bandwidth: number;
  readonly latency: number;
}

/** A host that is in no catalogue. */
export interface HostSection {
  readonly name?: string | undefined;
  readonly accelerator: string;
  readonly accelerators: number;
  readonly link: LinkSection & { readonly kind: "nvlink" | "xgmi" | "pcie" };
  readonly network: LinkSection;
}

/** A host whose devices are threads on its cores. */
export interface CpuSection {
  readonly cores: number;
  readonly peak: number;
  readonly memory: number;
  readonly memoryBandwidth: number;
}

/** Hosts and how many; without `host` and `cpu`, this machine. */
export interface ClusterSection {
  readonly name?: string | undefined;
  readonly host?: string | HostSection | undefined;
  readonly cpu?: CpuSection | undefined;
  readonly hosts?: number | undefined;
  readonly devices?: number | undefined;
}

/** How the model is split and run. */
export interface PlanSection {
  readonly tp?: number | undefined;
  readonly pp?: number | undefined;
  readonly dp?: number | undefined;
  readonly cp?: number | undefined;
  readonly contextExchange?: Plan["contextExchange"] | undefined;
  readonly ep?: number | undefined;
  readonly etp?: number | undefined;
  readonly dispatch?: Plan["dispatch"] | undefined;
  readonly dispatchPrecision?: Plan["dispatchPrecision"];
  readonly expertCapacity?: number | undefined;
  readonly vpp?: number | undefined;
  readonly microbatch?: number | undefined;
  readonly globalBatch: number;
  readonly sequence?: number | undefined;
  readonly document?: number | undefined;
  readonly schedule?: PipelineSchedule | undefined;
  readonly stageLayers?: readonly number[] | "balanced" | undefined;
  readonly accountForEmbedding?: boolean | undefined;
  readonly accountForLoss?: boolean | undefined;
  readonly pipelines?: Pipelines | undefined;
  readonly pipelineBatches?: readonly number[] | undefined;
  readonly sequenceParallel?: boolean | undefined;
  readonly scatterGather?: boolean | undefined;
  readonly recompute?: Plan["recompute"] | undefined;
  readonly recomputeLayers?: number | undefined;
  readonly offload?: Plan["offload"] | undefined;
  readonly order?: readonly PlanAxis[] | undefined;
  readonly precision?: "fp32" | "bf16" | "fp16" | undefined;
  readonly matrixPrecision?: Plan["matrixPrecision"] | undefined;
  readonly attentionPrecision?: "fp8" | undefined;
  readonly activationPrecision?: "fp8" | undefined;
  readonly gradientPrecision?: "fp32" | "bf16" | "fp16" | undefined;
  readonly gatheredCopies?: boolean | undefined;
  readonly momentPrecision?: Plan["momentPrecision"] | undefined;
  readonly reductionPrecision?: Plan["reductionPrecision"] | undefined;
  readonly gradientExchange?: Plan["gradientExchange"] | undefined;
  readonly zero?: 0 | 1 | 2 | 3 | undefined;
  readonly flashAttention?: boolean | undefined;
  readonly flashVersion?: 1 | 2 | 3 | undefined;
  readonly vocabulary?: Plan["vocabulary"];
  readonly vocabParallelLoss?: boolean | undefined;
  readonly fusedSoftmax?: boolean | undefined;
  readonly fusedNorm?: boolean | undefined;
  readonly fusedElementwise?: boolean | undefined;
  readonly fusedLoss?: boolean | undefined;
  readonly fusedRotary?: boolean | undefined;
  readonly groupedKernel?: boolean | undefined;
  readonly cudaGraphs?: Plan["cudaGraphs"] | undefined;
  readonly dropout?: number | undefined;
  readonly overlapDataParallel?: boolean | undefined;
  readonly overlapGradientProducts?: boolean | undefined;
  readonly overlapTensorParallel?: boolean | undefined;
  readonly overlapPointToPoint?: boolean | undefined;
  readonly overlapExpertParallel?: boolean | undefined;
}

/** What is read, how it becomes tokens, and what is kept for validation. */
export interface DataSection {
  readonly path: string;
  readonly tokenizer: "character" | "byte";
  readonly validation: number;
  readonly seed?: number | undefined;
}

/** The optimizer and its learning rate over the steps. */
export interface OptimizerSection {
  readonly kind: "adamw" | "lamb";
  readonly learningRate: number;
  readonly minimumLearningRate?: number | undefined;
  readonly warmup: number;
  readonly schedule: "constant" | "cosine" | "linear" | "inverse-sqrt" | "wsd";
  readonly decay?: number | undefined;
  readonly decayShape: "linear" | "cosine" | "sqrt";
  readonly beta1: number;
  readonly beta2: number;
  readonly epsilon: number;
  readonly weightDecay: number;
  readonly clip: number;
}

/** When the state is saved, and how many saves stay. */
export interface CheckpointSection {
  readonly every?: number | undefined;
  readonly interval?: number | undefined;
  readonly keep: number;
  readonly directory?: string | undefined;
}

/** When the validation loss is measured. */
export interface EvaluateSection {
  readonly every?: number | undefined;
  readonly batches: number;
}

/**
 * What counts as a spike of the loss or the gradient's norm, and what is done about it; what is left out has the
 * guard's defaults.
 */
interface GuardSection {
  readonly window?: number | undefined;
  readonly settle?: number | undefined;
  readonly factor?: number | undefined;
  readonly patience?: number | undefined;
  readonly reattempts?: number | undefined;
  readonly back?: number | undefined;
  readonly margin?: number | undefined;
  readonly limit?: number | undefined;
}

/** How routers choose experts and keep them busy; what is left out has the engine's defaults. */
export interface RouterSection {
  readonly scoring?: Scoring | undefined;
  readonly balanceLoss?: number | undefined;
  readonly zLoss?: number | undefined;
  readonly scale?: number | undefined;
  readonly groups?:
    | { readonly groups: number; readonly keep: number; readonly best?: number | undefined }
    | undefined;
  readonly biasRate?: number | undefined;
  readonly dropPolicy?: DropOptions["policy"] | undefined;
  readonly capacityGroups?: number | undefined;
  readonly capacityParts?:
    | {
        readonly microbatch?: number | undefined;
        readonly cp?: number | undefined;
        readonly tp?: number | undefined;
      }
    | undefined;
}

/** What carries the run out, and by which arithmetic. */
export interface EngineSection {
  readonly kind: "embedded";
  readonly kernels: KernelChoice;
  readonly fp8Scaling?: Fp8Scaling | undefined;
}

/** Text generated when training ends. */
export interface SampleSection {
  readonly prompt: string;
  readonly tokens: number;
  readonly temperature: number;
  readonly seed?: number | undefined;
}

/** A run file after its schema: defaults filled in, quantities in SI, nothing resolved yet. */
export interface RunDescription {
  readonly name?: string | undefined;
  readonly model: string | ModelSection;
  readonly cluster?: string | ClusterSection | undefined;
  readonly plan: "auto" | PlanSection;
  readonly data?: DataSection | undefined;
  readonly optimizer: OptimizerSection;
  readonly steps?: number | undefined;
  readonly seed: number;
  readonly checkpoint: CheckpointSection;
  readonly evaluate: EvaluateSection;
  readonly guard?: GuardSection | undefined;
  readonly router?: RouterSection | undefined;
  readonly engine: EngineSection;
  readonly sample?: SampleSection | undefined;
}

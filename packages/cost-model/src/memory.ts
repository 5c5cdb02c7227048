/**
 * Peak memory of each pipeline rank, by what it is spent on. States by parameter and precision
 * (arXiv 1910.02054 §3.1), activations by what backward needs (arXiv 2205.05198 §4) times the
 * microbatches in flight.
 */
import type { Bytes } from "@trireme/core";
import {
  type Model,
  type Plan,
  type Stage,
  bytesOf,
  microbatches,
  stageParameters,
  lossVocab,
} from "@trireme/workload";
import { type StageList, stageList } from "./stage-list.ts";
import { layerActivations, layerWorkspace } from "./activation-memory.ts";

/** Memory of one pipeline rank at its peak. */
export interface RankMemory {
  /** Pipeline rank. */
  readonly rank: number;
  readonly weights: Bytes;
  readonly gradients: Bytes;
  /** Master weights and moments. */
  readonly optimizer: Bytes;
  /** Kept for backward, all microbatches in flight. */
  readonly activations: Bytes;
  /** Logits, their 32-bit probabilities and gradient; what the layer at work needs. */
  readonly workspace: Bytes;
  /** Context of the device, communication buffers, and what the allocator cannot use. */
  readonly overhead: Bytes;
  readonly total: Bytes;
}

/** Memory of a plan; its worst rank decides whether it fits. */
export interface Memory extends RankMemory {
  readonly ranks: readonly RankMemory[];
}

/** What a process holds before the first tensor, and how much of its tensors an allocator loses. */
export interface MemoryOverhead {
  readonly fixed: Bytes;
  /** Of activations and workspace: blocks that no request fits into. */
  readonly fragmentation: number;
  /** What the loss holds for each logit at its peak; left out, what the plan's kernels do. */
  readonly perLogit?: Bytes;
}

/** A GPU process with CUDA context, cuBLAS and NCCL buffers. */
export const gpuOverhead: MemoryOverhead = { fixed: 2.5e9, fragmentation: 0.06 };

/** Chunks of microbatches whose activations a rank holds at its peak. */
function chunksInFlight(p: Plan, rank: number): number {
  const m = microbatches(p);
  if (p.schedule === "gpipe") return m;
  if (p.schedule === "1f1b") return Math.min(m, p.pp - rank);
  // Megatron-LM's interleaved warm-up, 2(p − r − 1) + (v − 1)p, and the one at work.
  return Math.min(m * p.vpp, 2 * (p.pp - rank - 1) + (p.vpp - 1) * p.pp + 1);
}

/** Peak memory of a plan by pipeline rank, and of the worst. */
export function memory(o: {
  readonly model: Model;
  readonly plan: Plan;
  readonly overhead?: MemoryOverhead;
}): Memory {
  return memoryOf(o.model, o.plan, stageList(o.model, o.plan), o.overhead ?? gpuOverhead);
}

/** The same from the list of the plan's stages. */
export function memoryOf(m: Model, p: Plan, list: StageList, overhead: MemoryOverhead): Memory {
  const logits = overhead.perLogit ?? perLogit(p);
  const held = list.rankKinds.map((rank) => heldBy(m, p, list.stages, rank, logits));
  const byRank: RankMemory[] = [];
  let worst: RankMemory | undefined;
  for (let rank = 0; rank < p.pp; rank++) {
    const { parameters, kept, workspace } = held[list.rankKindOf[rank]!]!;
    const inFlight = (kept / p.vpp) * chunksInFlight(p, rank);
    const own = rankMemory(p, rank, parameters, inFlight, workspace, overhead, m.layers);
    byRank.push(own);
    if (worst === undefined || own.total > worst.total) worst = own;
  }
  return { ...worst!, ranks: byRank };
}

/** What a pipeline rank holds: parameters, and activations of one microbatch through all its chunks. */
interface Held {
  readonly parameters: number;
  readonly kept: Bytes;
  readonly workspace: Bytes;
}

function heldBy(m: Model, p: Plan, list: readonly Stage[], rank: number, logits: Bytes): Held {
  let parameters = 0;
  let kept = 0;
  let workspace = 0;
  for (let i = rank; i < list.length; i += p.pp) {
    const s = list[i]!;
    parameters += stageParameters(m, p, s).total;
    kept += s.layers * layerActivations(m, p);
    if (s.layers > 0) workspace = Math.max(workspace, layerWorkspace(m, p));
    if (s.head) workspace += ((p.microbatch * p.sequence) / p.cp) * lossVocab(m, p) * logits;
  }
  return { parameters, kept, workspace };
}

function rankMemory(
  p: Plan,
  rank: number,
  parameters: number,
  activations: Bytes,
  workspace: Bytes,
  overhead: MemoryOverhead,
  layers: number,
): RankMemory {
  const replicas = p.dp * p.cp;
  const element = bytesOf(p.precision);
  // ZeRO-3 holds its share, and two layers at a time in full.
  const gathered = p.zero === 3 ? Math.min(1, (2 * p.pp) / layers) : 0;
  const weights = parameters * element * Math.min(1, 1 / (p.zero >= 3 ? replicas : 1) + gathered);
  const gradients = (parameters * bytesOf(p.gradientPrecision)) / (p.zero >= 2 ? replicas : 1);
  const optimizer = (parameters * (p.precision === "fp32" ? 8 : 12)) / (p.zero >= 1 ? replicas : 1);
  const lost = overhead.fixed + overhead.fragmentation * (activations + workspace);
  return {
    rank,
    weights,
    gradients,
    optimizer,
    activations,
    workspace,
    overhead: lost,
    total: weights + gradients + optimizer + activations + workspace + lost,
  };
}

/**
 * What the loss holds for each logit. Megatron-LM's kernels turn the 32-bit copy into probabilities and
 * those into the gradient where they lie, so that beside it there is the logit or its gradient in training
 * precision; elementary operations keep both and two more 32-bit copies.
 */
function perLogit(p: Plan): Bytes {
  const e = bytesOf(p.precision);
  return p.fusedElementwise ? e + 4 : 2 * e + 12;
}

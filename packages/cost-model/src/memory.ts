/**
 * Peak memory of each pipeline rank, by what it is spent on. States by parameter and precision
 * (arXiv 1910.02054 §3.1), activations by what backward needs (arXiv 2205.05198 §4) times the
 * microbatches in flight.
 */
import type { Bytes } from "@trireme/core";
import {
  type Model,
  type Plan,
  bytesOf,
  microbatches,
  stageParameters,
  stages,
  lossVocab,
} from "@trireme/workload";
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
  const { model: m, plan: p } = o;
  const overhead = o.overhead ?? gpuOverhead;
  const list = stages(m, p);
  const byRank: RankMemory[] = [];
  for (let rank = 0; rank < p.pp; rank++) {
    const own = list.filter((s) => s.stage % p.pp === rank);
    let parameters = 0;
    let kept = 0;
    let workspace = 0;
    for (const s of own) {
      parameters += stageParameters(m, p, s).total;
      kept += s.layers * layerActivations(m, p);
      if (s.layers > 0) workspace = Math.max(workspace, layerWorkspace(m, p));
      if (s.head) workspace += headActivations(m, p);
    }
    byRank.push(
      rankMemory(
        p,
        rank,
        parameters,
        (kept / own.length) * chunksInFlight(p, rank),
        workspace,
        overhead,
        m.layers,
      ),
    );
  }
  const worst = byRank.reduce((a, b) => (b.total > a.total ? b : a));
  return { ...worst, ranks: byRank };
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
  const share = (stage: number): number => (p.zero >= stage ? p.dp * p.cp : 1);
  const element = bytesOf(p.precision);
  // ZeRO-3 holds its share, and two layers at a time in full.
  const gathered = p.zero === 3 ? Math.min(1, (2 * p.pp) / layers) : 0;
  const weights = parameters * element * Math.min(1, 1 / share(3) + gathered);
  const gradients = (parameters * bytesOf(p.gradientPrecision)) / share(2);
  const optimizer = (parameters * (p.precision === "fp32" ? 8 : 12)) / share(1);
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
 * Logits, their 32-bit copy that becomes the probabilities, and its gradient in training precision;
 * elementary operations hold two more 32-bit copies at their peak.
 */
function headActivations(m: Model, p: Plan): Bytes {
  const e = bytesOf(p.precision);
  const tokens = (p.microbatch * p.sequence) / p.cp;
  return tokens * lossVocab(m, p) * (p.fusedElementwise ? 2 * e + 4 : 2 * e + 12);
}

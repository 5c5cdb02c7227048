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
  expertReplicas,
  lossVocab,
  microbatches,
  parameters,
  stageParameters,
} from "@trireme/workload";
import { chunksInFlight } from "./chunks-in-flight.ts";
import { type StageList, stageList } from "./stage-list.ts";
import { betweenProducts } from "./adapter-memory.ts";
import { stageActivations, stageWorkspace } from "./activation-memory.ts";

/** Memory of one pipeline rank at its peak. */
export interface RankMemory {
  /** Pipeline rank; where pipelines differ, their stages are counted through, pipeline by pipeline. */
  readonly rank: number;
  readonly weights: Bytes;
  readonly gradients: Bytes;
  /** Master weights and moments. */
  readonly optimizer: Bytes;
  /** Kept for backward, all microbatches in flight. */
  readonly activations: Bytes;
  /** Logits, their 32-bit probabilities and gradient; what the layer at work needs, gradients among it. */
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
  /** Workspaces that matrix libraries take from the allocator, whatever the model. */
  readonly libraries: Bytes;
  /** The same for products of experts that a library computes side by side. */
  readonly groupedLibraries: Bytes;
  /** What the loss holds for each logit at its peak; left out, what the plan's kernels do. */
  readonly perLogit?: Bytes;
  /** Products keep their inputs for backward beside frozen matrices too, which need none. */
  readonly frozenInputs?: boolean;
}

/**
 * A GPU process with CUDA context, cuBLAS and NCCL buffers. PyTorch and Transformer Engine each keep a cuBLAS workspace
 * of 32 MiB, and Transformer Engine four more for the streams of its grouped products.
 */
export const gpuOverhead: MemoryOverhead = {
  fixed: 2.5e9,
  fragmentation: 0.06,
  libraries: 2 * 2 ** 25,
  groupedLibraries: 4 * 2 ** 25,
};

/**
 * A rank of `@trireme/engine` on CPU cores: its tensors, the packed blocks of a product (1 MiB at most), and of
 * the loss a 32-bit gradient in the logits' place. What an operation has made waits for that operation's backward.
 */
export const hostOverhead: MemoryOverhead = {
  fixed: 0,
  fragmentation: 0,
  libraries: 2 ** 20,
  groupedLibraries: 0,
  perLogit: 4,
  frozenInputs: true,
};

/** Peak memory of a plan by pipeline rank, and of the worst. */
export function memory(o: {
  readonly model: Model;
  readonly plan: Plan;
  readonly overhead?: MemoryOverhead;
}): Memory {
  return memoryOf(o.model, o.plan, stageList(o.model, o.plan), o.overhead ?? gpuOverhead);
}

/** The same from the list of the plan's stages, and what their ranks hold (`heldByKind`). */
export function memoryOf(
  m: Model,
  p: Plan,
  list: StageList,
  overhead: MemoryOverhead,
  held: readonly Held[] = heldByKind(m, p, list, overhead),
): Memory {
  const byRank: RankMemory[] = [];
  let worst: RankMemory | undefined;
  for (let rank = 0; rank < p.pp; rank++) {
    const states = held[list.rankKindOf[rank]!]!;
    const inFlight = (states.kept / list.onRank[rank]!.length) * chunksInFlight(p, rank);
    const own = rankMemory(m, p, rank, states, inFlight, overhead);
    byRank.push(own);
    if (worst === undefined || own.total > worst.total) worst = own;
  }
  return { ...worst!, ranks: byRank };
}

const forwardsFirst: ReadonlySet<Plan["schedule"]> = new Set(["gpipe", "looped-bfs"]);

/**
 * Microbatches of whose logits the loss keeps a 32-bit gradient beside the one at work: the others where all go forward
 * first.
 */
export function waitingLosses(p: Plan): number {
  return forwardsFirst.has(p.schedule) ? microbatches(p) - 1 : 0;
}

/**
 * What each kind of pipeline rank holds: the same for all plans that shape their kernels alike and have as many
 * `waitingLosses`.
 */
export function heldByKind(
  m: Model,
  p: Plan,
  list: StageList,
  overhead: MemoryOverhead,
): readonly Held[] {
  return list.rankKinds.map((rank) => heldBy(m, p, list, rank, overhead));
}

/** What a pipeline rank holds: parameters, and activations of one microbatch through all its chunks. */
export interface Held {
  readonly parameters: number;
  /** Of them routed experts'. */
  readonly experts: number;
  readonly trainable: number;
  readonly trainableExperts: number;
  readonly kept: Bytes;
  readonly workspace: Bytes;
}

function heldBy(
  m: Model,
  p: Plan,
  list: StageList,
  rank: number,
  { libraries, groupedLibraries, perLogit: logits = perLogit(p), frozenInputs }: MemoryOverhead,
): Held {
  let total = 0;
  let experts = 0;
  let trainable = 0;
  let trainableExperts = 0;
  let kept = 0;
  let workspace = 0;
  for (const i of list.onRank[rank]!) {
    const s = list.stages[i]!;
    const own = stageParameters(m, p, s);
    total += own.total;
    experts += own.experts;
    trainable += own.trainable;
    trainableExperts += own.trainableExperts;
    kept += frozenInputs === true ? withInputs(m, p, s) : stageActivations(m, p, s);
    workspace = Math.max(workspace, stageWorkspace(m, p, s));
    const rows = (p.microbatch * p.sequence) / p.cp;
    // Between its two passes a rank keeps the probabilities of another microbatch, in 32 bits; rows that it looked up,
    // the last stage's output and the gradients of both it has of two (arXiv 2411.05288, appendix C).
    if (s.vocabulary === true) {
      workspace += rows * (lossVocab(m, p) * (logits + 4) + 8 * m.hidden * bytesOf(p.precision));
    }
    if (!s.head || p.vocabulary !== undefined) continue;
    workspace += rows * lossVocab(m, p) * (logits + waitingLosses(p) * 4);
  }
  const grouped = m.experts !== undefined && !p.groupedKernel;
  workspace += libraries + (grouped ? groupedLibraries : 0);
  return { parameters: total, experts, trainable, trainableExperts, kept, workspace };
}

/** As if all was trained, and what is between the products of adapters. */
function withInputs(m: Model, p: Plan, s: Stage): Bytes {
  const { adapter: _, ...whole } = m;
  return stageActivations(whole, p, s) + s.layers * betweenProducts(m, p);
}

function rankMemory(
  m: Model,
  p: Plan,
  rank: number,
  held: Held,
  activations: Bytes,
  overhead: MemoryOverhead,
): RankMemory {
  const { workspace } = held;
  const element = bytesOf(p.precision);
  // ZeRO-3 holds its share, and two layers at a time in full.
  const gathered = p.zero === 3 ? Math.min(1, (2 * p.pp) / m.layers) * held.parameters : 0;
  const stored = Math.min(
    held.parameters,
    sharedOut(p, held.parameters, held.experts, 3) + gathered,
  );
  const weights = stored * element - quantisedAway(m, p, held, stored);
  const gradients =
    sharedOut(p, held.trainable, held.trainableExperts, 2) * bytesOf(p.gradientPrecision);
  const master = p.precision === "fp32" ? 0 : 4;
  const moments = 2 * bytesOf(p.momentPrecision ?? "fp32");
  const state = p.offload === "optimizer" ? 0 : master + moments;
  const optimizer = sharedOut(p, held.trainable, held.trainableExperts, 1) * state;
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
 * What ZeRO leaves a rank from a stage on: dense parameters go over one group of replicas, routed experts over another.
 */
function sharedOut(p: Plan, all: number, experts: number, from: 1 | 2 | 3): number {
  return p.zero < from ? all : (all - experts) / (p.dp * p.cp) + experts / expertReplicas(p);
}

/**
 * Bytes of a frozen number of the layers where it is kept in 8 or 4 bits (with NF4's scale for each 64, itself in 8
 * bits).
 */
export function frozenBytes(m: Model): Bytes | undefined {
  if (m.adapter === undefined || m.adapter.base === "full") return undefined;
  return m.adapter.base === "nf4" ? 0.5 + 1 / 64 : 1;
}

/** Bytes that frozen matrices save by that. */
function quantisedAway(m: Model, p: Plan, held: Held, stored: number): Bytes {
  const each = frozenBytes(m);
  if (each === undefined) return 0;
  const frozen = (held.parameters - held.trainable) * (stored / Math.max(1, held.parameters));
  // Embedding and head stay in training precision.
  const layers = parameters(m);
  return frozen * (layers.layers / layers.total) * (bytesOf(p.precision) - each);
}

/**
 * What the loss holds for each logit. Megatron-LM's kernels turn the 32-bit copy into probabilities and
 * those into the gradient where they lie, so that beside it there is the logit or its gradient in training
 * precision; elementary operations keep both and two more 32-bit copies.
 */
function perLogit(p: Plan): Bytes {
  const e = bytesOf(p.precision);
  return p.fusedElementwise || p.fusedLoss === true ? e + 4 : 2 * e + 12;
}

/**
 * What layers keep for their backward pass, per rank and microbatch. For GPT form in 16 bits with
 * dropout, plain attention and sequence parallelism this is sbh(34 + 5as/h)/t (arXiv 2205.05198,
 * Table 2), without sequence parallelism sbh(10 + 24/t + 5as/ht).
 */
import type { Bytes } from "@trireme/core";
import {
  type LayerForm,
  type Model,
  type Plan,
  type Stage,
  blocksOf,
  bytesOf,
  countForms,
  expertRows,
  isGated,
  isScan,
  layerFormAt,
  layerForms,
  rankTokens,
  recomputedLayers,
  scanWidths,
} from "@trireme/workload";
import { adapterActivations } from "./adapter-memory.ts";
import { encoderActivations } from "./encoder-memory.ts";
import { rematerialisedScan, scanGradients, storedByScan } from "./scan-memory.ts";

/** Bytes that a stage keeps of one microbatch under the plan's recomputation; the loss is counted apart. */
export function stageActivations(m: Model, p: Plan, s: Stage): Bytes {
  const again = recomputedLayers(p, s.layers);
  const kept = countForms(m, s.firstLayer + again, s.layers - again);
  const recomputed = countForms(m, s.firstLayer, again);
  const whole: Plan = { ...p, recompute: "none" };
  let bytes = s.embedding ? encoderActivations(m, p) : 0;
  for (const [i, form] of layerForms(m).entries()) {
    if (kept[i]! > 0) bytes += kept[i]! * layerActivations(m, whole, form);
    if (recomputed[i]! > 0) bytes += recomputed[i]! * layerActivations(m, p, form);
  }
  if (s.head) bytes += headActivations(m, p);
  if (s.head && m.prediction > 0) {
    bytes += m.prediction * layerActivations(m, p, layerForms(m)[layerFormAt(m, m.layers)]!);
  }
  return bytes;
}

/** Input and result of the final norm, the latter for the product with the vocabulary (arXiv 2205.05198 §4.3). */
function headActivations(m: Model, p: Plan): Bytes {
  return 2 * bytesOf(p.precision) * residualRows(p) * m.hidden;
}

/**
 * Bytes that exist only while a layer is at work backward: all it would have kept, when it is recomputed, and
 * gradients, of the residual before and behind the block and of the block's widest inner value.
 */
export function stageWorkspace(m: Model, p: Plan, s: Stage): Bytes {
  const again = recomputedLayers(p, s.layers);
  const counts = countForms(m, s.firstLayer, s.layers);
  const recomputed = countForms(m, s.firstLayer, again);
  return layerForms(m).reduce((most, form, i) => {
    if (counts[i] === 0) return most;
    const workspace = recomputed[i]! > 0 ? layerWorkspace(m, p, form) : 0;
    return Math.max(most, workspace + layerGradients(m, p, form));
  }, 0);
}

function layerGradients(m: Model, p: Plan, form: LayerForm): Bytes {
  const tokens = (p.microbatch * p.sequence) / p.cp;
  const dense = (tokens / p.tp) * denseWidth(m, form);
  const block = form.experts ? Math.max(dense, keptByExperts(m, p, 0, 1)) : dense;
  const inner = isScan(form.mixer) ? Math.max(block, scanGradients(m, p, form.mixer)) : block;
  // Sequence parallelism gathers the gradient of the block's result for its last product.
  const rows = 2 * residualRows(p) + (p.sequenceParallel ? tokens : 0);
  return bytesOf(p.precision) * (rows * m.hidden + inner);
}

/** Inner width of what every token meets behind the mixer. */
function denseWidth(m: Model, form: LayerForm): number {
  return form.experts ? m.experts!.sharedFfn : form.dense ? m.ffn : 0;
}

/** Rows of the residual stream on a rank, of one microbatch. */
function residualRows(p: Plan): number {
  const tokens = (p.microbatch * p.sequence) / p.cp;
  return p.sequenceParallel ? tokens / p.tp : tokens;
}

function layerActivations(m: Model, p: Plan, form: LayerForm): Bytes {
  const e = bytesOf(p.precision);
  const tokens = (p.microbatch * p.sequence) / p.cp;
  const rows = p.sequenceParallel ? tokens / p.tp : tokens;
  if (p.recompute === "full") return rows * m.hidden * e;
  // Input and second residual; queries, values and context, or a scan's projection in; gate and down products.
  if (p.recompute === "operators") {
    const gate = isGated(m.activation) ? 1 : 2;
    const ffn = form.dense ? gate * m.ffn * ofActivation(p) : 0;
    const attention = (m.heads + m.kvHeads + m.heads) * m.headDim * ofAttention(p);
    const mixer =
      form.mixer === "none"
        ? 0
        : isScan(form.mixer)
          ? e * scanWidths(m, form.mixer).projected
          : attention;
    const experts = form.experts ? keptByExperts(m, p, 0, gate) * ofActivation(p) : 0;
    return e * blocksOf(form) * rows * m.hidden + (tokens / p.tp) * (mixer + ffn) + experts;
  }
  if (p.recompute === "rematerialise") return rematerialised(m, p, form);
  // Of experts what is in front of their norm's result.
  if (p.recompute === "experts" && form.experts) {
    const mixer = storedByLayer(m, p, { ...form, experts: false }, false);
    return mixer + 2 * rows * m.hidden * e;
  }
  return storedByLayer(m, p, form, p.recompute === "selective");
}

function layerWorkspace(m: Model, p: Plan, form: LayerForm): Bytes {
  const whole = storedByLayer(m, p, form, false);
  if (p.recompute === "none") return 0;
  if (p.recompute === "selective") return whole - storedByLayer(m, p, form, true);
  if (p.recompute === "experts") return whole - layerActivations(m, p, form);
  return p.recompute === "rematerialise" ? whole - rematerialised(m, p, form) : whole;
}

/**
 * MegaScale-MoE §4.1, with n ranks and experts of width fh: (2kf + 4 + 2/m)·bsh/n elements: the layer's input,
 * the residual between the blocks, queries, keys, values and their context, and the results of the first products.
 */
function rematerialised(m: Model, p: Plan, form: LayerForm): Bytes {
  const e = bytesOf(p.precision);
  const tokens = (p.microbatch * p.sequence) / p.cp;
  const rows = p.sequenceParallel ? tokens / p.tp : tokens;
  const mixer = isScan(form.mixer)
    ? e * rematerialisedScan(m, form.mixer)
    : form.mixer === "attention"
      ? ofAttention(p) * attentionWidth(m)
      : 0;
  const attention = (tokens / p.tp) * mixer + e * rows * blocksOf(form) * m.hidden;
  const gate = isGated(m.activation) ? 2 : 1;
  const dense = (tokens / p.tp) * gate * denseWidth(m, form);
  const block = form.experts ? keptByExperts(m, p, 0, gate) + dense : dense;
  return attention + block * ofActivation(p);
}

/** Bytes of one number of queries, keys, values or context, as attention keeps them. */
function ofAttention(p: Plan): Bytes {
  return p.attentionPrecision === undefined ? bytesOf(p.precision) : 1;
}

/** The same of what an activation keeps. */
function ofActivation(p: Plan): Bytes {
  return p.activationPrecision === undefined ? bytesOf(p.precision) : 1;
}

/** Width of queries, keys, values and context side by side, latents included. */
function attentionWidth(m: Model): number {
  const value = m.latent?.valueDim ?? m.headDim;
  const gate = m.attentionGate ? m.heads * m.headDim : 0;
  const latents = m.latent === undefined ? 0 : m.latent.queryRank + m.latent.keyValueRank;
  return (m.heads + m.kvHeads) * m.headDim + (m.kvHeads + m.heads) * value + latents + gate;
}

/** Elements that the experts keep: `inputs` copies of their rows, and `inner` of the inner width. */
function keptByExperts(m: Model, p: Plan, inputs: number, inner: number): number {
  const experts = m.experts!;
  const rows = expertRows(experts, p);
  return rows.computed * (inputs * m.hidden + (inner * experts.ffn) / p.etp);
}

function storedByLayer(m: Model, p: Plan, form: LayerForm, withoutScores: boolean): Bytes {
  const e = bytesOf(p.precision);
  const tokens = (p.microbatch * p.sequence) / p.cp;
  const rows = p.sequenceParallel ? tokens / p.tp : tokens;
  const mask = p.dropout > 0 ? 1 : 0;
  // Inputs of both norms and of both column-parallel products, and the masks of both branches.
  // Elementary operations keep their 32-bit and scaled copies of the norms' inputs.
  const norms = m.norm === "rmsnorm" && !p.fusedNorm ? blocksOf(form) * (8 + e) : 0;
  // What a product keeps for its weight gradient is its quantised input.
  const operand = p.matrixPrecision === undefined ? e : 1;
  // Norms behind the blocks keep their inputs too; branches of one norm share theirs.
  const blocks = blocksOf(form);
  const residual = blocks * e + (m.normPlacement === "both" ? blocks * e : 0);
  // Frozen matrices need no input; adapters keep their own.
  const trained = m.adapter === undefined ? operand : 0;
  const inputs = (m.sharedNorm ? 1 : blocks) * trained;
  const replicated = rows * m.hidden * (residual + inputs + blocks * mask + norms);
  const queryNorm = m.qkNorm === "none" ? 0 : (m.heads + m.kvHeads) * m.headDim;
  const attends = form.mixer === "attention";
  const mixer = isScan(form.mixer)
    ? storedByScan(m, form.mixer, e, trained)
    : attends
      ? attentionWidth(m) * ofAttention(p) + queryNorm * e
      : 0;
  // Gate and up are kept before they are cut and after.
  const cut = m.activationClamp > 0 ? 2 : 0;
  const inner = (isGated(m.activation) ? (p.fusedElementwise ? 2 : 3) : 1) + cut;
  const gate = inner * ofActivation(p);
  const ffn = denseWidth(m, form);
  const split = (tokens / p.tp) * (mixer + (gate + trained) * ffn);
  const adapters = adapterActivations(m, p);
  const routed = form.experts ? expertsStored(m, p, gate, trained) : 0;
  const heads = m.heads / p.tp;
  const scores = !attends
    ? 0
    : p.flashAttention
      ? (4 * p.microbatch * heads * p.sequence) / p.cp
      : withoutScores
        ? 0
        : ((p.microbatch * heads * p.sequence ** 2) / p.cp) * (e + (mask > 0 ? mask + e : 0));
  return replicated + split + adapters + routed + scores;
}

/** Permuted inputs, both inner widths, results before their weighted sum, and the router's scores in 32 bits. */
function expertsStored(m: Model, p: Plan, gate: Bytes, operand: Bytes): Bytes {
  const experts = m.experts!;
  const rows = expertRows(experts, p);
  const inner = (gate + operand) * (experts.ffn / p.etp);
  return (
    rows.computed * (operand * m.hidden + inner) +
    rows.sent * bytesOf(p.precision) * m.hidden +
    rankTokens(p) * 8 * experts.count
  );
}

/**
 * What an evaluation job costs that generates text: a prefill of the prompts, then tokens one after another, or several at
 * once by speculation, against a cache of keys and values that may be compressed.
 */
import { type Bytes, type Seconds, TriremeError, formatBytes } from "@trireme/core";
import { type Cluster, hostOf } from "@trireme/topology";
import {
  type Model,
  type Plan,
  type PlanOptions,
  bytesOf,
  definePlan,
  layerForms,
  countForms,
  parameters,
  stageParameters,
  vocabShard,
} from "@trireme/workload";
import { communication, network } from "../groups.ts";
import { gpuOverhead, hostOverhead } from "../memory.ts";
import { type Pricer, rooflinePricer } from "../pricer.ts";
import { cacheBytesPerToken, cachedTokens } from "./cache.ts";
import { type PassTime, passTime } from "./forward-pass.ts";
import { type Speculation, acceptedTokens } from "./speculation.ts";

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

/** Peak memory of one device. */
export interface InferenceMemory {
  readonly weights: Bytes;
  /** Keys and values at the end, all sequences. */
  readonly cache: Bytes;
  /** Of the widest layer in the prefill, and logits. */
  readonly workspace: Bytes;
  readonly overhead: Bytes;
  readonly total: Bytes;
}

/** The cost of a job's batch. */
export interface InferenceCost {
  readonly ok: true;
  /** Until the first token of all sequences. */
  readonly prefill: PassTime & { readonly seconds: Seconds };
  /** All further tokens. */
  readonly decode: PassTime & {
    readonly seconds: Seconds;
    readonly steps: number;
    /** Guessing included. */
    readonly secondsPerStep: Seconds;
    /** Of it, guessing. */
    readonly draft: Seconds;
    /** Generated tokens of all sequences, over the time of decoding. */
    readonly tokensPerSecond: number;
  };
  readonly seconds: Seconds;
  /** Generated tokens of all sequences, over the whole time. */
  readonly tokensPerSecond: number;
  readonly memory: InferenceMemory;
}

export type Inference =
  | InferenceCost
  | { readonly ok: false; readonly reason: string; readonly memory: InferenceMemory };

/**
 * Prices a batch. What does not fit into memory is a result, not an error.
 * Throws TriremeError "INFERENCE" for counts that are no positive integers or speculation that makes no sense, "PLAN"
 * where tp does not divide the model, "PRECISION" like `rooflinePricer`.
 */
export function inferenceCost(o: InferenceOptions): Inference {
  const { model: m, cluster, tp = 1, ep = 1, batch, prompt, generated } = o;
  for (const [name, n] of Object.entries({
    tp,
    ep,
    batch,
    prompt,
    generated,
    cacheBudget: o.cacheBudget ?? 1,
  })) {
    if (!Number.isSafeInteger(n) || n < 1) {
      throw new TriremeError("INFERENCE", `${name} ${n} must be an integer from 1 up`);
    }
  }
  if (tp * ep > cluster.devices) {
    const rule = `tp(${tp}) x ep(${ep}) = ${tp * ep} devices, but the cluster has ${cluster.devices}`;
    throw new TriremeError("INFERENCE", rule);
  }
  if (m.experts !== undefined && tp > 1) {
    throw new TriremeError("INFERENCE", `experts are spread by ep, not by tp ${tp}; use ep ${tp}`);
  }
  const accepted = o.speculation === undefined ? 1 : acceptedTokens(o.speculation);
  const kept = Math.min(prompt, o.cacheBudget ?? prompt);
  const needs = memoryOf(o, kept);
  const device = hostOf(cluster, 0).accelerator;
  if (needs.total > device.memory) {
    const reason = `a device needs ${formatBytes(needs.total)} (weights ${formatBytes(needs.weights)}, cache ${formatBytes(needs.cache)}, workspace ${formatBytes(needs.workspace)}), but ${device.name} has ${formatBytes(device.memory)}`;
    return { ok: false, reason, memory: needs };
  }
  const pass = passes(o);
  const prefill = pass(m, prompt, undefined, 0);
  // Attention grows with the cache, all else stays: the mean of a step is the step at the mean length.
  const steps = Math.ceil((generated - 1) / accepted);
  const middle = kept + generated / 2;
  const candidates = o.speculation?.candidates ?? 0;
  const verify = pass(m, candidates + 1, candidates + 1, middle);
  const draft = draftTime(o, pass, middle);
  const perStep = sum(verify) + draft;
  const decode = steps * perStep;
  const seconds = sum(prefill) + decode;
  return {
    ok: true,
    prefill: { ...prefill, seconds: sum(prefill) },
    decode: {
      compute: steps * verify.compute,
      tensorParallel: steps * verify.tensorParallel,
      seconds: decode,
      steps,
      secondsPerStep: perStep,
      draft: steps * draft,
      tokensPerSecond: (batch * ep * accepted) / perStep,
    },
    seconds,
    tokensPerSecond: (batch * ep * generated) / seconds,
    memory: needs,
  };
}

/** A pass of `tokens` new tokens of each sequence through a model. */
type Passes = (
  m: Model,
  tokens: number,
  queries: number | undefined,
  cached: number,
  tp?: number,
) => PassTime;

function passes(o: InferenceOptions): Passes {
  const { cluster, batch, precision = "bf16" } = o;
  const { accelerator, accelerators } = hostOf(cluster, 0);
  const pricer = o.pricer ?? rooflinePricer(accelerator, precision, { devices: accelerators });
  const on = network(cluster);
  return (m, tokens, queries, cached, tp = o.tp ?? 1) => {
    const plan = definePlan(m, planOptions({ ...o, tp }, tokens));
    return passTime({
      model: m,
      plan,
      pricer,
      communication: communication(on, plan, m.experts?.active),
      batch,
      // Every verified token has its logits; of a prompt the last.
      logits: batch * (queries ?? 1),
      ...(queries === undefined ? {} : { queries, cached }),
      cacheElement: o.cacheElement ?? bytesOf(precision),
      graphs: queries !== undefined && (o.graphs ?? true),
    });
  };
}

/** The new tokens of all sequences as the microbatch of a plan. */
function planOptions(o: InferenceOptions, sequence: number): PlanOptions {
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

/** Guessing of one step: a small model token by token, or heads side by side, each a layer of its own and the vocabulary. */
function draftTime(o: InferenceOptions, pass: Passes, cached: number): Seconds {
  const s = o.speculation;
  if (s === undefined) return 0;
  const depth = s.depth ?? s.candidates;
  if (s.draft !== undefined) return depth * sum(pass(s.draft, 1, 1, cached, 1));
  const { accelerator } = hostOf(o.cluster, 0);
  const pricer = o.pricer ?? rooflinePricer(accelerator, o.precision ?? "bf16");
  const { hidden, vocab } = o.model;
  const width = Math.ceil((hidden + vocab) / (o.tp ?? 1));
  const shape = [1, o.batch, width, hidden];
  return (
    depth *
    pricer.operator({
      key: `gemm/${o.precision ?? "bf16"}/forward/${shape.join("x")}`,
      kind: "gemm",
      form: o.precision ?? "bf16",
      pass: "forward",
      shape,
      flops: 2 * o.batch * width * hidden,
      bytes: 2 * (width * hidden + o.batch * (width + hidden)),
      count: 1,
    })
  );
}

function sum(t: PassTime): Seconds {
  return t.compute + t.tensorParallel;
}

/** Of a weight in a lower format. */
const formatBytesOf: Readonly<Record<NonNullable<Plan["matrixPrecision"]>, Bytes>> = {
  fp8: 1,
  fp4: 0.5,
};

function memoryOf(o: InferenceOptions, kept: number): InferenceMemory {
  const { model: m, tp = 1, batch, prompt, generated, precision = "bf16", speculation: s } = o;
  const element = bytesOf(precision);
  const weight = o.matrixPrecision === undefined ? element : formatBytesOf[o.matrixPrecision];
  const counts = countForms(m, 0, m.layers);
  const cacheOf = (of: Model, on: number, numbers: readonly number[]): Bytes =>
    batch *
    cacheBytesPerToken(of, on, o.cacheElement ?? element) *
    layerForms(of).reduce(
      (n, form, i) => n + numbers[i]! * cachedTokens(of, form, kept + generated),
      0,
    );
  const plan = definePlan(m, planOptions(o, 1));
  const whole = { stage: 0, firstLayer: 0, layers: m.layers, embedding: true, head: true };
  // Embedding and head stay in the plan's precision.
  const tables = (m.tied ? 1 : 2) * vocabShard(m, plan) * m.hidden;
  let weights = (stageParameters(m, plan, whole).total - tables) * weight + tables * element;
  let cache = cacheOf(m, tp, counts);
  if (s?.draft !== undefined) {
    weights += parameters(s.draft).total * element;
    cache += cacheOf(s.draft, 1, countForms(s.draft, 0, s.draft.layers));
  } else if (s !== undefined) {
    weights += ((s.depth ?? s.candidates) * m.hidden * (m.hidden + m.vocab) * element) / tp;
  }
  // A layer's input and output, and the wider of its inner products; before compression, the whole prompt's keys and values of one layer.
  const inner = Math.max((2 * m.ffn) / tp, ((m.heads + 2 * m.kvHeads) * m.headDim) / tp);
  const uncompressed = kept < prompt ? batch * prompt * cacheBytesPerToken(m, tp, element) : 0;
  const rows = s === undefined ? batch : batch * (s.candidates + 1);
  const workspace =
    batch * prompt * element * (2 * m.hidden + inner) + uncompressed + 4 * rows * (m.vocab / tp);
  const device = hostOf(o.cluster, 0).accelerator;
  const { fixed, fragmentation } = device.kind === "cpu" ? hostOverhead : gpuOverhead;
  const overhead = fixed + fragmentation * workspace;
  return { weights, cache, workspace, overhead, total: weights + cache + workspace + overhead };
}

/**
 * What an evaluation job costs that generates text: a prefill of the prompts, then tokens one after another, or several
 * at once by speculation, against a cache of keys and values that may be compressed.
 */
import { type Seconds, TriremeError, formatBytes } from "@trireme/core";
import { hostOf } from "@trireme/topology";
import { type Model, bytesOf, definePlan } from "@trireme/workload";
import { communication, network } from "../groups.ts";
import { rooflinePricer } from "../pricer.ts";
import { type PassTime, passTime } from "./forward-pass.ts";
import { type InferenceMemory, inferenceMemory } from "./inference-memory.ts";
import { type InferenceOptions, planOptions } from "./inference-options.ts";
import { acceptedTokens } from "./speculation.ts";

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
  const needs = inferenceMemory(o, kept);
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

/**
 * Guessing of one step: a small model token by token, or heads side by side, each a layer of its own and the
 * vocabulary.
 */
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

/** What an evaluation job holds on a device. */
import type { Bytes } from "@trireme/core";
import { hostOf } from "@trireme/topology";
import {
  type Model,
  type Plan,
  bytesOf,
  countForms,
  definePlan,
  layerForms,
  parameters,
  scanWidths,
  stageParameters,
  vocabShard,
} from "@trireme/workload";
import { frozenBytes, gpuOverhead, hostOverhead } from "../memory.ts";
import { cacheBytesPerToken, cachedTokens, stateBytes } from "./cache.ts";
import { type InferenceOptions, planOptions } from "./inference-options.ts";

/** Peak memory of one device. */
export interface InferenceMemory {
  readonly weights: Bytes;
  /** Keys and values at the end, and states of what scans, all sequences. */
  readonly cache: Bytes;
  /** Of the widest layer in the prefill, and logits. */
  readonly workspace: Bytes;
  readonly overhead: Bytes;
  readonly total: Bytes;
}

/** Of a weight in a lower format. */
const formatBytesOf: Readonly<Record<NonNullable<Plan["matrixPrecision"]>, Bytes>> = {
  fp8: 1,
  int8: 1,
  fp4: 0.5,
};

/** Peak memory when the cache keeps `kept` tokens of each prompt. */
export function inferenceMemory(o: InferenceOptions, kept: number): InferenceMemory {
  const { model: m, tp = 1, batch, prompt, generated, precision = "bf16", speculation: s } = o;
  const element = bytesOf(precision);
  const weight = o.matrixPrecision === undefined ? element : formatBytesOf[o.matrixPrecision];
  const counts = countForms(m, 0, m.layers);
  const cacheElement = o.cacheElement ?? element;
  const cacheOf = (of: Model, on: number, numbers: readonly number[]): Bytes =>
    batch *
    layerForms(of).reduce(
      (n, form, i) =>
        n +
        numbers[i]! *
          (cachedTokens(of, form, kept + generated) * cacheBytesPerToken(of, on, cacheElement) +
            stateBytes(of, form, on, element)),
      0,
    );
  const plan = definePlan(m, planOptions(o, 1));
  const whole = { stage: 0, firstLayer: 0, layers: m.layers, embedding: true, head: true };
  // Embedding and head stay in the plan's precision, and so do adapters.
  const held = stageParameters(m, plan, whole);
  const tables = (m.tied ? 1 : 2) * vocabShard(m, plan) * m.hidden;
  const own = tables + (m.adapter === undefined ? 0 : held.trainable);
  let weights = (held.total - own) * (frozenBytes(m) ?? weight) + own * element;
  let cache = cacheOf(m, tp, counts);
  if (s?.draft !== undefined) {
    weights += parameters(s.draft).total * element;
    cache += cacheOf(s.draft, 1, countForms(s.draft, 0, s.draft.layers));
  } else if (s !== undefined) {
    weights += ((s.depth ?? s.candidates) * m.hidden * (m.hidden + m.vocab) * element) / tp;
  }
  // A layer's input and output, and the wider of its inner products; before compression, the whole prompt's keys and
  // values of one layer.
  const scans = (["mamba", "delta-net"] as const).map((scan) =>
    layerForms(m).some((form) => form.mixer === scan) ? scanWidths(m, scan).projected : 0,
  );
  const inner = Math.max(2 * m.ffn, (m.heads + 2 * m.kvHeads) * m.headDim, ...scans) / tp;
  const uncompressed = kept < prompt ? batch * prompt * cacheBytesPerToken(m, tp, element) : 0;
  const rows = s === undefined ? batch : batch * (s.candidates + 1);
  const workspace =
    batch * prompt * element * (2 * m.hidden + inner) + uncompressed + 4 * rows * (m.vocab / tp);
  const device = hostOf(o.cluster, 0).accelerator;
  const { fixed, fragmentation } = device.kind === "cpu" ? hostOverhead : gpuOverhead;
  const overhead = fixed + fragmentation * workspace;
  return { weights, cache, workspace, overhead, total: weights + cache + workspace + overhead };
}

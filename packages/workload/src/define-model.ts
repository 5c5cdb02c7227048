/** Models from their shapes: defaults, and the rules of a shape. */
import { TriremeError } from "@trireme/core";
import {
  type Adapter,
  type AdapterTarget,
  type Encoder,
  type Experts,
  type LatentAttention,
  type Model,
  type Window,
  isGated,
} from "./model.ts";

/** Some fields that must be given, the rest at will. */
type Given<T, K extends keyof T> = Pick<T, K> & { readonly [P in keyof T]?: T[P] | undefined };

/** What `defineModel` needs, and what it may be told beside that. */
export type ModelOptions = Pick<Model, "layers" | "hidden" | "heads" | "vocab"> &
  Partial<Omit<Model, "window" | "latent" | "experts" | "adapter" | "encoders">> & {
    readonly window?: Given<Window, "size">;
    readonly latent?: Given<LatentAttention, "keyValueRank" | "nopeDim" | "ropeDim" | "valueDim">;
    readonly experts?: Given<Experts, "count" | "active">;
    readonly adapter?: Given<Adapter, "rank">;
    readonly encoders?: readonly EncoderOptions[];
  };

/** What an encoder needs; the rest has the form of ViT. */
export type EncoderOptions = Given<Encoder, "layers" | "hidden" | "heads" | "patch" | "tokens">;

/**
 * A model from its shape; what is left out has GPT form: kvHeads = heads, headDim = hidden / heads,
 * ffn = 4 hidden, context 2048, learned positions, LayerNorm before each block, GeLU, biases, tied
 * embeddings, causal. Experts are as wide as `ffn`, in every layer; an adapter changes queries and values.
 * Throws TriremeError "MODEL" for counts that are not positive integers, heads that do not divide, and
 * forms that exclude each other.
 */
export function defineModel(o: ModelOptions): Model {
  const { latent } = o;
  if (o.headDim === undefined && latent === undefined && o.hidden % o.heads !== 0) {
    fail(
      `hidden ${o.hidden} is not a multiple of heads ${o.heads}; use heads ${nearestDivisor(o.hidden, o.heads)}, or state headDim`,
    );
  }
  const bias = o.bias ?? true;
  const norm = o.norm ?? "layernorm";
  const block = o.block ?? "sequential";
  const ffn = o.ffn ?? 4 * o.hidden;
  const m: Model = {
    name: o.name ?? "custom",
    layers: o.layers,
    hidden: o.hidden,
    heads: o.heads,
    kvHeads: o.kvHeads ?? o.heads,
    headDim: latent === undefined ? (o.headDim ?? o.hidden / o.heads) : latentHead(latent, o),
    ffn,
    vocab: o.vocab,
    context: o.context ?? 2048,
    position: o.position ?? "learned",
    extraPositions: o.extraPositions ?? 0,
    rotaryBase: o.rotaryBase ?? 10_000,
    rotaryFraction: o.rotaryFraction ?? 1,
    norm,
    normEpsilon: o.normEpsilon ?? 1e-5,
    normBias: o.normBias ?? norm === "layernorm",
    normWeights: o.normWeights ?? true,
    normPlacement: o.normPlacement ?? "pre",
    block,
    sharedNorm: o.sharedNorm ?? block === "parallel",
    finalNorm: o.finalNorm ?? true,
    embeddingNorm: o.embeddingNorm ?? false,
    qkNorm: o.qkNorm ?? "none",
    activation: o.activation ?? "gelu",
    bias,
    qkvBias: o.qkvBias ?? bias,
    outputBias: o.outputBias ?? bias,
    headBias: o.headBias ?? false,
    attentionSinks: o.attentionSinks ?? false,
    tied: o.tied ?? true,
    causal: o.causal ?? true,
    segments: o.segments ?? 0,
    pooler: o.pooler ?? false,
    prediction: o.prediction ?? 0,
    encoders: (o.encoders ?? []).map((e) => encoder(e)),
    source: o.source ?? "defined by its shape",
    ...(o.window === undefined ? {} : { window: over({ size: 0, every: 0 }, o.window) }),
    ...(latent === undefined ? {} : { latent: over({ ...latent, queryRank: 0 }, latent) }),
    ...(o.experts === undefined ? {} : { experts: experts(o.experts, ffn) }),
    ...(o.adapter === undefined ? {} : { adapter: adapter(o.adapter) }),
  };
  checkModel(m);
  return m;
}

function latentHead(latent: { nopeDim: number; ropeDim: number }, o: ModelOptions): number {
  const width = latent.nopeDim + latent.ropeDim;
  if (o.headDim !== undefined && o.headDim !== width) {
    fail(`headDim ${o.headDim} is not latent nopeDim + ropeDim = ${width}; leave it out`);
  }
  return width;
}

/** The defaults with what is given over them. */
function over<T extends object>(defaults: T, o: { readonly [P in keyof T]?: T[P] | undefined }): T {
  const given = Object.entries(o).filter(([, value]) => value !== undefined);
  return { ...defaults, ...Object.fromEntries(given) };
}

function experts(o: Given<Experts, "count" | "active">, ffn: number): Experts {
  const defaults = {
    count: o.count,
    active: o.active,
    ffn,
    sharedFfn: 0,
    sharedGate: false,
    denseLayers: 0,
    every: 1,
    routerBias: false,
    selectionBias: false,
  };
  return over(defaults, o);
}

function adapter(o: Given<Adapter, "rank">): Adapter {
  const defaults: Adapter = { rank: o.rank, targets: ["query", "value"], base: "full" };
  return over(defaults, o);
}

function encoder(o: EncoderOptions): Encoder {
  const span = o.span ?? o.tokens;
  const defaults: Encoder = {
    modality: "image",
    layers: o.layers,
    hidden: o.hidden,
    heads: o.heads,
    ffn: 4 * o.hidden,
    activation: "gelu",
    norm: "layernorm",
    bias: true,
    patch: o.patch,
    tokens: o.tokens,
    span,
    positionRows: span,
    embeddingNorm: false,
    merge: 1,
    projector: [],
    frozen: false,
  };
  return over(defaults, o);
}

const sizes = [
  "layers",
  "hidden",
  "heads",
  "kvHeads",
  "headDim",
  "ffn",
  "vocab",
  "context",
] as const;

function checkModel(m: Model): void {
  for (const key of sizes) whole(key, m[key], 1);
  for (const key of ["extraPositions", "segments", "prediction"] as const) whole(key, m[key], 0);
  if (m.heads % m.kvHeads !== 0) {
    fail(
      `heads ${m.heads} is not a multiple of kvHeads ${m.kvHeads}; use kvHeads ${nearestDivisor(m.heads, m.kvHeads)}`,
    );
  }
  if (!(m.rotaryFraction > 0 && m.rotaryFraction <= 1)) {
    fail(`rotaryFraction ${m.rotaryFraction} must be in (0, 1]`);
  }
  if (m.sharedNorm && (m.block !== "parallel" || m.normPlacement !== "pre")) {
    fail(
      `sharedNorm needs block parallel with norms before it, not block ${m.block} with ${m.normPlacement}`,
    );
  }
  if (m.window !== undefined) {
    whole("window.size", m.window.size, 1);
    whole("window.every", m.window.every, 0);
  }
  if (m.latent !== undefined) checkLatent(m, m.latent);
  if (m.experts !== undefined) checkExperts(m.experts, m.layers);
  if (m.adapter !== undefined) checkAdapter(m, m.adapter);
  for (const [i, e] of m.encoders.entries()) checkEncoder(e, i);
}

function checkLatent(m: Model, latent: LatentAttention): void {
  whole("latent.queryRank", latent.queryRank, 0);
  for (const key of ["keyValueRank", "nopeDim", "ropeDim", "valueDim"] as const) {
    whole(`latent.${key}`, latent[key], 1);
  }
  if (m.kvHeads !== m.heads) {
    fail(`latent attention makes keys for all ${m.heads} heads; leave kvHeads ${m.kvHeads} out`);
  }
  if (m.qkNorm !== "none") fail(`latent attention has norms of its own; leave qkNorm out`);
  if (m.position !== "rotary") {
    fail(`latent attention rotates ropeDim; use position rotary, not ${m.position}`);
  }
}

function checkExperts(e: Experts, layers: number): void {
  for (const key of ["count", "active", "ffn", "every"] as const)
    whole(`experts.${key}`, e[key], 1);
  for (const key of ["sharedFfn", "denseLayers"] as const) whole(`experts.${key}`, e[key], 0);
  if (e.active > e.count) {
    fail(
      `experts.active ${e.active} are more than experts.count ${e.count}; the most is ${e.count}`,
    );
  }
  if (e.denseLayers >= layers || e.every > layers) {
    fail(
      `experts.denseLayers ${e.denseLayers} and every ${e.every} leave no layer of ${layers} with experts; leave experts out, or use fewer`,
    );
  }
  if (e.sharedGate && e.sharedFfn === 0) {
    fail("experts.sharedGate needs a shared expert; state sharedFfn");
  }
}

const targets: readonly AdapterTarget[] = ["query", "key", "value", "output", "gate", "up", "down"];

function checkAdapter(m: Model, a: Adapter): void {
  whole("adapter.rank", a.rank, 1);
  if (a.targets.length === 0) fail(`adapter.targets is empty; name some of ${targets.join(", ")}`);
  if (new Set(a.targets).size < a.targets.length) {
    fail(`adapter.targets ${a.targets.join(", ")} names one twice`);
  }
  for (const t of a.targets) {
    if (!targets.includes(t)) {
      fail(`adapter.targets: "${t}" is not one of ${targets.join(", ")}`);
    }
    if (t === "gate" && !isGated(m.activation)) {
      fail(`adapter.targets: ${m.activation} has no gate; use up`);
    }
    if (m.experts !== undefined && (t === "gate" || t === "up" || t === "down")) {
      fail(
        `adapter.targets: adapters of experts' matrices (${t}) are not covered; use attention's`,
      );
    }
    if (m.latent !== undefined && t !== "output") {
      fail(`adapter.targets: latent attention has no single ${t} matrix; use output`);
    }
  }
}

function checkEncoder(e: Encoder, index: number): void {
  const name = `encoders[${index}]`;
  for (const key of [
    "layers",
    "hidden",
    "heads",
    "ffn",
    "patch",
    "tokens",
    "span",
    "merge",
  ] as const) {
    whole(`${name}.${key}`, e[key], 1);
  }
  whole(`${name}.positionRows`, e.positionRows, 0);
  for (const width of e.projector) whole(`${name}.projector`, width, 1);
  if (e.hidden % e.heads !== 0) {
    fail(
      `${name}: hidden ${e.hidden} is not a multiple of heads ${e.heads}; use heads ${nearestDivisor(e.hidden, e.heads)}`,
    );
  }
  for (const [what, n] of [
    ["span", e.span],
    ["merge", e.merge],
  ] as const) {
    if (e.tokens % n === 0) continue;
    fail(
      `${name}: tokens ${e.tokens} are not a multiple of ${what} ${n}; the nearest is ${Math.max(1, Math.round(e.tokens / n)) * n}`,
    );
  }
}

function whole(name: string, value: number, least: 0 | 1): void {
  if (!Number.isSafeInteger(value) || value < least) {
    fail(`${name} ${value} must be a whole number, ${least} or more`);
  }
}

function fail(message: string): never {
  throw new TriremeError("MODEL", message);
}

/** The divisor of `n` nearest to `target`, the smaller of equals; 1 when `n` is no positive integer. */
export function nearestDivisor(n: number, target: number): number {
  if (!Number.isSafeInteger(n) || n < 1) return 1;
  let best = 1;
  const consider = (d: number): void => {
    const gain = Math.abs(best - target) - Math.abs(d - target);
    if (gain > 0 || (gain === 0 && d < best)) best = d;
  };
  for (let d = 1; d * d <= n; d++) {
    if (n % d !== 0) continue;
    consider(d);
    consider(n / d);
  }
  return best;
}

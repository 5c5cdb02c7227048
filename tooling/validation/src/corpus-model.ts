/** The model of a corpus row, or what keeps it from being described. */
import type { ModelOptions } from "@trireme/workload";
import { adapterOf } from "./adapter-scripts.ts";
import { hybridOf, isHybrid } from "./corpus-hybrid.ts";
import { type CorpusRow, number, object, text } from "./corpus-row.ts";

/** Describes a row's model; a missing field comes back as "missing: field". */
export function modelOf(row: CorpusRow): ModelOptions | string {
  const f = row.model;
  const [layers, hidden, heads, vocab, sequence] = [
    "layers",
    "hidden",
    "heads",
    "vocab",
    "seq",
  ].map((k) => number(f, k));
  for (const [key, value] of Object.entries({ layers, hidden, heads, vocab, seq: sequence })) {
    if (value === undefined) return `missing: ${key}`;
  }
  const mixture = object(f, "moe");
  for (const key of mixture === undefined ? [] : ["experts", "topk"]) {
    if (number(mixture!, key) === undefined) return `missing: ${key}`;
  }
  const hybrid = isHybrid(row) ? hybridOf(row) : {};
  if (typeof hybrid === "string") return hybrid;
  const act = text(f, "act");
  const gated = act === "swiglu" || act === "geglu";
  const kvHeads = number(f, "kv_heads");
  const ffn = number(f, "ffn");
  const headDim = number(f, "head_dim");
  const latent = latentOf(text(f, "attn"));
  const window = windowOf(text(f, "attn"));
  const changes = text(row.parallel, "arch_changes");
  // OpenAI's gpt-oss has biases and a logit per head beside them (its model card, §2; model.py).
  const biased = text(f, "name").startsWith("gpt-oss");
  const experts = expertsOf(row, ffn ?? 4 * hidden!);
  const adapter = adapterOf(row);
  return {
    name: text(f, "name"),
    layers: layers!,
    hidden: hidden!,
    heads: heads!,
    vocab: vocab!,
    context: sequence!,
    activation:
      act === "geglu"
        ? "geglu"
        : gated
          ? "swiglu"
          : act === "squared_relu"
            ? "squared-relu"
            : "gelu",
    norm: gated ? "rmsnorm" : "layernorm",
    // Latent attention rotates a part of its heads, whatever else is added to the tokens.
    position: !gated && act !== "squared_relu" && latent === undefined ? "learned" : "rotary",
    bias: biased || (!gated && act !== "squared_relu"),
    attentionSinks: biased,
    activationClamp: biased ? 7 : 0,
    tied: text(f, "tied") === "" ? !gated : text(f, "tied") === "true",
    ...(kvHeads === undefined ? {} : { kvHeads }),
    ...(ffn === undefined ? {} : { ffn }),
    ...(headDim === undefined || latent !== undefined ? {} : { headDim }),
    ...(latent === undefined ? {} : { latent }),
    ...(window === undefined ? {} : { window }),
    // MegaScale §3.1; its rows say "sliding-window attention" too, but no width.
    ...(changes.includes("parallel transformer block")
      ? { block: "parallel", sharedNorm: true }
      : {}),
    ...(experts === undefined ? {} : { experts }),
    prediction: predictionOf(row),
    ...(adapter === undefined ? {} : { adapter }),
    ...hybrid,
  };
}

/** "mla(q_lora=1536,kv_lora=512,nope=128,rope=64,v=128)"; undefined for anything else. */
export function latentOf(attention: string): ModelOptions["latent"] {
  if (!attention.startsWith("mla(")) return undefined;
  const width = (key: string): number | undefined => {
    const found = new RegExp(`[(,]${key}=(\\d+)`).exec(attention)?.[1];
    return found === undefined ? undefined : Number(found);
  };
  const [keyValueRank, nopeDim, ropeDim, valueDim] = ["kv_lora", "nope", "rope", "v"].map(width);
  if (
    keyValueRank === undefined ||
    nopeDim === undefined ||
    ropeDim === undefined ||
    valueDim === undefined
  ) {
    return undefined;
  }
  return { queryRank: width("q_lora") ?? 0, keyValueRank, nopeDim, ropeDim, valueDim };
}

/** "alternating sliding-window(128)/full" or "5:1 sliding(1024):global"; undefined for anything else. */
export function windowOf(attention: string): ModelOptions["window"] {
  const alternating = /^alternating sliding-window\((\d+)\)\/full$/.exec(attention)?.[1];
  if (alternating !== undefined) return { size: Number(alternating), every: 2 };
  const [, windowed, size] = /^(\d+):1 sliding\((\d+)\):global$/.exec(attention) ?? [];
  return size === undefined ? undefined : { size: Number(size), every: Number(windowed) + 1 };
}

function expertsOf(row: CorpusRow, ffn: number): ModelOptions["experts"] {
  const e = object(row.model, "moe");
  if (e === undefined) return undefined;
  const count = number(e, "experts");
  const active = number(e, "topk");
  if (count === undefined || active === undefined) return undefined;
  const own = number(e, "ffn") ?? ffn;
  return {
    count,
    active,
    ffn: own,
    sharedFfn: number(e, "shared_ffn") ?? (number(e, "shared") ?? 0) * own,
    denseLayers: number(e, "dense_layers") ?? 0,
    every: number(e, "every") ?? 1,
  };
}

/** DeepSeek-V3 costs 249.7 GFLOP a token without its prediction module and about 260 with it, by Megatron-Bridge's count. */
function predictionOf(row: CorpusRow): number {
  const counted = number(row.derived, "gflops_per_token") ?? 0;
  const stated = number(row.parallel, "mtp_layers") ?? number(row.model, "mtp_layers");
  return stated ?? (text(row.model, "name") === "deepseek-v3" && counted > 255 ? 1 : 0);
}

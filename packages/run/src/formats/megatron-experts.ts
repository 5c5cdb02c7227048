/** Megatron-LM's settings of experts, latent attention and windows, in and out. */
import type { Experts, LatentAttention, Model, Window } from "@trireme/workload";
import { present } from "./interchange.ts";
import type { OptionList } from "./option-list.ts";

/** Names and values; a value of true is a flag, of false or undefined nothing. */
export type Settings = Readonly<Record<string, string | number | boolean | undefined>>;
export type Refuse = (option: string, value: unknown, reason: string) => undefined;

export function expertSettings(m: Model, refuse: Refuse): Settings {
  const { experts: e } = m;
  if (e === undefined) return {};
  if (e.routerBias) refuse("model.experts.routerBias", true, "Megatron-LM's routers have none");
  return {
    "num-experts": e.count,
    "moe-router-topk": e.active,
    "moe-ffn-hidden-size": e.ffn,
    "moe-shared-expert-intermediate-size": e.sharedFfn === 0 ? undefined : e.sharedFfn,
    "moe-shared-expert-gate": e.sharedGate,
    "moe-layer-freq": frequencyOf(e, m.layers),
    "moe-router-enable-expert-bias": e.selectionBias,
  };
}

/** A number counts from the first layer, a list says each: `([0]*3+[1]*58)`. */
function frequencyOf({ denseLayers, every }: Experts, layers: number): string | undefined {
  if (denseLayers === 0 && every === 1) return undefined;
  if (every === 1) return `([0]*${denseLayers}+[1]*${layers - denseLayers})`;
  const list = Array.from({ length: layers }, (_, i) =>
    i >= denseLayers && (i + 1) % every === 0 ? 1 : 0,
  );
  return `([${list.join(",")}])`;
}

export function expertsOf(o: OptionList, refuse: Refuse): unknown {
  const count = o.number("--num-experts");
  if (count === undefined) return undefined;
  return present({
    count,
    active: o.number("--moe-router-topk") ?? 2,
    ffn: o.number("--moe-ffn-hidden-size"),
    sharedFfn: o.number("--moe-shared-expert-intermediate-size"),
    sharedGate: o.flag("--moe-shared-expert-gate") || undefined,
    selectionBias: o.flag("--moe-router-enable-expert-bias") || undefined,
    ...patternOf(o, refuse),
  });
}

function patternOf(o: OptionList, refuse: Refuse): object {
  const text = o.text("--moe-layer-freq");
  if (text === undefined || text === "1") return {};
  const list = listed(text);
  if (list === undefined) {
    // Megatron's number has experts in layers 0, n, 2n, …
    refuse("--moe-layer-freq", text, "experts are in every n-th layer's last; list each layer");
    return {};
  }
  const first = list.indexOf(1);
  for (let every = 1; every <= list.length; every++) {
    // Dense layers up to the first with experts, or to the period before it.
    const denseLayers = Math.max(0, first + 1 - every);
    const dense = every === 1 ? first : denseLayers;
    if (list.every((x, i) => x === (i >= dense && (i + 1) % every === 0 ? 1 : 0))) {
      return { denseLayers: dense, every };
    }
  }
  refuse("--moe-layer-freq", text, "experts are in every n-th layer behind dense ones");
  return {};
}

/** The zeros and ones of a Python list made of lists, repetitions and sums. */
function listed(text: string): readonly number[] | undefined {
  const parts = text.replaceAll(/[()\s]/g, "").split("+");
  const list: number[] = [];
  for (const part of parts) {
    const match = /^\[([01](?:,[01])*)\](?:\*(\d{1,5}))?$/.exec(part);
    if (match === null) return undefined;
    const digits = match[1]!.split(",").map(Number);
    for (let i = 0; i < Number(match[2] ?? 1); i++) list.push(...digits);
  }
  return list.includes(1) ? list : undefined;
}

export function latentSettings(latent: LatentAttention | undefined): Settings {
  if (latent === undefined) return {};
  return {
    "multi-latent-attention": true,
    "q-lora-rank": latent.queryRank === 0 ? undefined : latent.queryRank,
    "kv-lora-rank": latent.keyValueRank,
    "qk-head-dim": latent.nopeDim,
    "qk-pos-emb-head-dim": latent.ropeDim,
    "v-head-dim": latent.valueDim,
  };
}

export function latentOf(o: OptionList): unknown {
  if (!o.flag("--multi-latent-attention")) return undefined;
  return present({
    queryRank: o.number("--q-lora-rank"),
    keyValueRank: o.number("--kv-lora-rank") ?? 32,
    nopeDim: o.number("--qk-head-dim") ?? 128,
    ropeDim: o.number("--qk-pos-emb-head-dim") ?? 64,
    valueDim: o.number("--v-head-dim") ?? 128,
  });
}

/** Megatron counts the tokens before a query, not itself. */
export function windowSettings(window: Window | undefined): Settings {
  if (window === undefined) return {};
  return {
    "window-size": `${window.size - 1},0`,
    "window-attn-skip-freq": window.every === 0 ? undefined : window.every,
  };
}

export function windowOf(o: OptionList, refuse: Refuse): unknown {
  const text = o.text("--window-size");
  const every = o.number("--window-attn-skip-freq");
  if (text === undefined) return undefined;
  const match = /^\(?(\d+),\s*0\)?$/.exec(text);
  if (match === null) return refuse("--window-size", text, "only so many tokens back: N,0");
  return present({ size: Number(match[1]) + 1, every });
}

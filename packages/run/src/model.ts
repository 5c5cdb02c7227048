/** The model section resolved: a preset, a preset with changes, or a shape of one's own. */
import { type Model, defineModel, model } from "@trireme/workload";
import type { ModelSection, RunDescription } from "./description.ts";
import { type Resolution, stated } from "./resolution.ts";

/**
 * The model of a run.
 * @param vocabulary The tokenizer's, when it is known; a byte tokenizer's always is.
 */
export function resolveModel(
  resolution: Resolution,
  d: RunDescription,
  vocabulary: number | undefined,
): Model | undefined {
  const tokens = d.data?.tokenizer === "byte" ? 256 : vocabulary;
  const found = build(resolution, d, tokens);
  if (found === undefined || tokens === undefined || d.data === undefined) return found;
  if (found.vocab >= tokens) return found;
  const rule = `the ${d.data.tokenizer} tokenizer has ${tokens} tokens, more than the model's vocabulary`;
  const path = typeof d.model === "string" ? ["model"] : ["model", "vocab"];
  return resolution.problem(path, found.vocab, rule, `nearest: ${tokens}, or leave it out`);
}

function build(
  resolution: Resolution,
  d: RunDescription,
  tokens: number | undefined,
): Model | undefined {
  if (typeof d.model === "string") {
    const name = d.model;
    return resolution.attempt(["model"], name, () => model(name));
  }
  const { preset, ...own } = d.model;
  const base =
    preset === undefined
      ? undefined
      : resolution.attempt(["model", "preset"], preset, () => model(preset));
  if (preset !== undefined && base === undefined) return undefined;
  const { layers, hidden, heads } = { ...stated(base ?? {}), ...stated(own) } as ModelSection;
  const vocab = own.vocab ?? base?.vocab ?? tokens;
  for (const [key, value] of Object.entries({ layers, hidden, heads })) {
    if (value === undefined) resolution.problem(["model", key], undefined, "required: an integer");
  }
  if (vocab === undefined) {
    const rule = "required: an integer, since no data tell the vocabulary";
    resolution.problem(["model", "vocab"], undefined, rule);
  } else if (own.vocab === undefined && base === undefined) {
    resolution.orElse(["model", "vocab"], undefined, vocab, "the tokenizer's vocabulary");
  }
  if (layers === undefined || hidden === undefined || heads === undefined || vocab === undefined) {
    return undefined;
  }
  const name = own.name ?? base?.name ?? d.name ?? "custom";
  const widths = base === undefined ? {} : scaledWidths(base, own, hidden, heads);
  const kept = base === undefined ? {} : unlessReplaced(base, own);
  const options = { ...kept, ...widths, ...stated(own), name, layers, hidden, heads, vocab };
  return resolution.attempt(["model"], own, () => defineModel(options));
}

/** Fields whose default follows from another: where a file changes that one, the preset's value goes. */
const following: Readonly<Partial<Record<keyof ModelSection, readonly (keyof Model)[]>>> = {
  norm: ["normBias"],
  bias: ["qkvBias", "outputBias"],
  block: ["sharedNorm"],
  latent: ["headDim", "kvHeads"],
};

/** The preset without what follows from a field that the file changes. */
function unlessReplaced(base: Model, own: ModelSection): Partial<Model> {
  const gone = new Set<string>(
    Object.entries(following).flatMap(([field, followers]) =>
      Reflect.get(own, field) === undefined ? [] : followers,
    ),
  );
  return Object.fromEntries(Object.entries(base).filter(([key]) => !gone.has(key)));
}

/** A preset made wider or narrower keeps its proportions: head groups, and the inner widths. */
function scaledWidths(
  base: Model,
  own: ModelSection,
  hidden: number,
  heads: number,
): Partial<Pick<Model, "headDim" | "kvHeads" | "ffn" | "experts" | "mamba" | "deltaNet">> {
  if (own.hidden === undefined && own.heads === undefined) return {};
  const scaled = (width: number): number => Math.round((hidden * width) / base.hidden);
  const { experts, mamba, deltaNet } = base;
  const multiple = (n: number, of: number): number => of * Math.max(1, Math.round(scaled(n) / of));
  return {
    // A latent head is as wide as the latent says.
    ...(base.latent === undefined && own.latent === undefined ? { headDim: hidden / heads } : {}),
    ...(own.latent === undefined
      ? { kvHeads: Math.max(1, Math.round((heads * base.kvHeads) / base.heads)) }
      : {}),
    ffn: scaled(base.ffn),
    ...(experts === undefined
      ? {}
      : {
          experts: { ...experts, ffn: scaled(experts.ffn), sharedFfn: scaled(experts.sharedFfn) },
        }),
    // Heads are as wide as they were; their groups hold fewer or more.
    ...(mamba === undefined
      ? {}
      : { mamba: { ...mamba, heads: multiple(mamba.heads, mamba.groups) } }),
    ...(deltaNet === undefined
      ? {}
      : {
          deltaNet: { ...deltaNet, valueHeads: multiple(deltaNet.valueHeads, deltaNet.keyHeads) },
        }),
  };
}

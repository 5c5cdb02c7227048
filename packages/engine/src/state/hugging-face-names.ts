/**
 * The names of tensors in Hugging Face's files of Llama's form (Llama, Qwen 2 and 3, Mixtral, Qwen's
 * mixtures, DeepSeek-V2 and V3), where matrices are [out, in] and those that the engine makes one
 * product of are apart.
 */
import { TriremeError } from "@trireme/core";
import type { Model } from "@trireme/workload";
import type { Range } from "../memory/slice.ts";

/** A tensor of a file: some columns of one of the engine's, or, of a vector, some of its numbers. */
export interface NamedPart {
  readonly name: string;
  /** Of the engine's tensor, along its last dim; undefined for all. */
  readonly columns: Range | undefined;
  /** Whether it is a matrix whose rows and columns are exchanged. */
  readonly transposed: boolean;
}

/** Throws `CHECKPOINT` for a model that these files do not hold. */
export function checkNames(m: Model): void {
  const odd = (
    [
      [`position ${m.position}`, m.position !== "rotary" || m.rotaryFraction !== 1],
      [`norm ${m.norm}`, m.norm !== "rmsnorm"],
      [`activation ${m.activation}`, m.activation !== "swiglu"],
      ["parallel blocks", m.block !== "sequential"],
      ["a bias of the feed-forward block, the head or a router", m.bias || m.headBias],
      ["a router with a bias that is trained", m.experts?.routerBias === true],
    ] as const
  ).find(([, is]) => is);
  if (odd === undefined) return;
  throw new TriremeError(
    "CHECKPOINT",
    `files of Llama's form do not hold ${m.name}, which has ${odd[0]}; use wholeModel and its names`,
  );
}

const tops: Readonly<Record<string, string>> = {
  wte: "model.embed_tokens",
  ln_f: "model.norm",
  lm_head: "lm_head",
};

/** The tensors of a file that the engine's tensor `name` is made of; none for state of the engine's own. */
export function namedParts(model: Model, name: string): readonly NamedPart[] {
  const [, path, kind] = /^(.+)\.(weight|bias|selection_bias|load)$/.exec(name)!;
  const top = tops[path!];
  if (top !== undefined) {
    return [{ name: `${top}.${kind}`, columns: undefined, transposed: false }];
  }
  const [, index, block, rest] = /^h\.(\d+)\.(\w+)(?:\.(.+))?$/.exec(path!)!;
  const at = `model.layers.${index}`;
  const part = (to: string, columns?: Range, transposed = kind === "weight"): NamedPart => ({
    name: `${at}.${to}`,
    columns,
    transposed,
  });
  if (block === "ln_1") return [part(`input_layernorm.${kind}`, undefined, false)];
  if (block === "ln_2") return [part(`post_attention_layernorm.${kind}`, undefined, false)];
  if (block === "attn") return attentionParts(model, rest!, kind!, part);
  return feedForwardParts(model, rest!, kind!, part);
}

type Part = (to: string, columns?: Range, transposed?: boolean) => NamedPart;

function attentionParts(
  { heads, kvHeads, headDim }: Model,
  path: string,
  kind: string,
  part: Part,
): readonly NamedPart[] {
  const to = (name: string): string => `self_attn.${name}.${kind}`;
  if (path.endsWith("norm")) return [part(to(path), undefined, false)];
  if (path === "c_proj") return [part(to("o_proj"))];
  if (path !== "c_attn") return [part(to(path))];
  const [queries, keys] = [heads * headDim, kvHeads * headDim];
  return [
    part(to("q_proj"), { start: 0, count: queries }),
    part(to("k_proj"), { start: queries, count: keys }),
    part(to("v_proj"), { start: queries + keys, count: keys }),
  ];
}

/** Gate, up and down. */
const blockNames = ["gate_proj", "up_proj", "down_proj"] as const;
const mixtralNames = ["w1", "w3", "w2"] as const;

function feedForwardParts(
  model: Model,
  path: string,
  kind: string,
  part: Part,
): readonly NamedPart[] {
  const mixtral = isMixtral(model);
  const mixture = mixtral ? "block_sparse_moe" : "mlp";
  if (kind === "load") return [];
  if (kind === "selection_bias") {
    return [part("mlp.gate.e_score_correction_bias", undefined, false)];
  }
  if (path === "router") return [part(`${mixture}.gate.weight`)];
  if (path === "shared_gate") return [part("mlp.shared_expert_gate.weight")];
  const [, prefix = "", which] = /^(?:(.+)\.)?(c_fc|c_proj)$/.exec(path)!;
  const { experts } = model;
  const block = (names: readonly string[], into: string, ffn: number): readonly NamedPart[] => {
    const [gate, up, down] = names.map((name) => `${into}.${name}.${kind}`);
    if (which === "c_proj") return [part(down!)];
    return [part(gate!, { start: 0, count: ffn }), part(up!, { start: ffn, count: ffn })];
  };
  if (prefix === "") return block(blockNames, "mlp", model.ffn);
  if (prefix === "shared") {
    const into = experts!.sharedGate ? "mlp.shared_expert" : "mlp.shared_experts";
    return block(blockNames, into, experts!.sharedFfn);
  }
  return block(mixtral ? mixtralNames : blockNames, `${mixture}.${prefix}`, experts!.ffn);
}

/** Whether experts have the names of Mixtral's files: those of every other family have DeepSeek's. */
function isMixtral({ experts, latent, qkNorm }: Model): boolean {
  if (experts === undefined || latent !== undefined || qkNorm !== "none") return false;
  return experts.sharedFfn === 0 && !experts.selectionBias;
}

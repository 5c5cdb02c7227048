/** Rows of models with state-space layers or linear attention: their layers from the row, or from the catalogue where it has the model. */
import { type Model, type ModelOptions, model, modelNames } from "@trireme/workload";
import { type CorpusRow, number, object, text } from "./corpus-row.ts";

/** What a row says of layers that are no usual blocks. */
export type Hybrid = Pick<
  ModelOptions,
  "pattern" | "mamba" | "deltaNet" | "position" | "qkNorm" | "attentionGate" | "bias" | "norm"
>;

/** Chunks of Megatron-LM's state-space layers (mamba_mixer.py). */
const megatronChunk = 128;

/** Whether a row's model is no stack of attention and feed-forward blocks. */
export function isHybrid(row: CorpusRow): boolean {
  return (
    object(row.model, "mamba") !== undefined ||
    text(row.model, "hybrid_pattern") !== "" ||
    /mamba|gated-deltanet/.test(text(row.model, "attn"))
  );
}

/** The row's own pattern and widths; else those of the model of that name; a string says what is missing. */
export function hybridOf(row: CorpusRow): Hybrid | string {
  const pattern = patternOf(row);
  const s = object(row.model, "mamba");
  if (pattern !== undefined && s !== undefined) {
    const [heads, headDim, stateDim, groups] = ["heads", "head_dim", "state", "groups"].map((k) =>
      number(s, k),
    );
    if (heads === undefined || headDim === undefined || stateDim === undefined) {
      return "missing: mamba.heads";
    }
    const mamba = { heads, headDim, stateDim, groups: groups ?? 1, chunk: megatronChunk };
    return { pattern, mamba, position: "none", norm: "rmsnorm", bias: false };
  }
  const name = text(row.model, "name");
  if (!modelNames.includes(name))
    return pattern === undefined ? "missing: pattern" : "missing: mamba";
  const known = model(name);
  return agrees(row, known) ? layersOf(known) : "missing: pattern";
}

/** "hybrid … (pattern MEM*E)", or a field of its own with a prediction module behind each slash. */
function patternOf(row: CorpusRow): string | undefined {
  const stated = text(row.model, "hybrid_pattern").toUpperCase();
  if (stated !== "") return stated.split("/", 2).join("/");
  return /pattern ([-mg*e]+)/i.exec(text(row.model, "attn"))?.[1]?.toUpperCase();
}

function agrees(row: CorpusRow, m: Model): boolean {
  return (["layers", "hidden", "heads"] as const).every((k) => number(row.model, k) === m[k]);
}

function layersOf(m: Model): Hybrid {
  const { pattern, mamba, deltaNet, position, qkNorm, attentionGate, bias, norm } = m;
  return {
    position,
    qkNorm,
    attentionGate,
    bias,
    norm,
    ...(pattern === undefined ? {} : { pattern }),
    ...(mamba === undefined ? {} : { mamba }),
    ...(deltaNet === undefined ? {} : { deltaNet }),
  };
}

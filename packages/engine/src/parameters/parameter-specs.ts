/**
 * The tensors of a pipeline stage, under the names and in the shapes of GPT-2 as Hugging Face
 * transformers stores it ([in, out] weights), so that its files can be read as such; and the part of
 * each that a tensor-parallel rank holds (Shoeybi et al., Megatron-LM, 2019): columns of the first
 * product of a pair, rows of the second, rows of the vocabulary.
 */
import { TriremeError } from "@trireme/core";
import { type Model, type Stage, layerFormAt, layerForms } from "@trireme/workload";
import { besideAdapters } from "./adapters.ts";
import { attentionSpecs } from "./attention-specs.ts";
import { type ExpertShares, expertSpecs } from "./expert-specs.ts";
import { type ParameterSpec, tiedTable } from "./parameter.ts";
import { type Share, alone, constant, feedForward, matrix, split } from "./spec-parts.ts";

const whole: ExpertShares = { tensor: alone, expert: alone, expertSplit: alone };

/** Every tensor that the stage computes with; a tied output head appears as the embedding table. */
export function stageParameters(
  model: Model,
  stage: Stage,
  shares: ExpertShares = whole,
): ParameterSpec[] {
  const { tensor: share } = shares;
  const specs: ParameterSpec[] = [];
  const { hidden, vocab } = model;
  const rows = split(share, 0, [
    { start: vocabStart(vocab, share), count: vocabRows(vocab, share) },
  ]);
  const table = matrix(tiedTable, [vocab, hidden], rows);
  if (stage.embedding) {
    specs.push(table);
    if (model.position === "learned") specs.push(matrix("wpe.weight", [model.context, hidden]));
  }
  for (let i = 0; i < stage.layers; i++) specs.push(...layer(model, stage.firstLayer + i, shares));
  if (stage.head) {
    specs.push(...norm(model, "ln_f"));
    if (!model.tied) specs.push(matrix("lm_head.weight", [vocab, hidden], rows));
    else if (!stage.embedding) specs.push(table);
    if (model.headBias) specs.push(constant("lm_head.bias", vocab, 0, rows));
  }
  return model.adapter === undefined ? specs : besideAdapters(model, specs, share);
}

/** The first row of the vocabulary that a rank holds. */
export function vocabStart(vocab: number, { rank, ranks }: Share): number {
  return rank * Math.ceil(vocab / ranks);
}

/** Rows of the vocabulary on a rank: the last may hold fewer. */
export function vocabRows(vocab: number, share: Share): number {
  const rows = Math.min(Math.ceil(vocab / share.ranks), vocab - vocabStart(vocab, share));
  if (rows > 0) return rows;
  throw new TriremeError(
    "PLAN",
    `vocab ${vocab} leaves nothing for rank ${share.rank} of tp ${share.ranks}; use a smaller tp`,
  );
}

function layer(model: Model, index: number, shares: ExpertShares): ParameterSpec[] {
  const { tensor } = shares;
  const prefix = `h.${index}`;
  const mixed = layerForms(model)[layerFormAt(model, index)]!.experts;
  return [
    ...norm(model, `${prefix}.ln_1`),
    ...attentionSpecs(model, `${prefix}.attn`, tensor),
    ...(hasSecondNorm(model) ? norm(model, `${prefix}.ln_2`) : []),
    ...(mixed
      ? expertSpecs(model, prefix, shares)
      : feedForward(model, `${prefix}.mlp`, model.ffn, tensor)),
  ];
}

/** Whether the feed-forward block has a norm of its own. */
function hasSecondNorm({ block, sharedNorm }: Model): boolean {
  return block !== "parallel" || !sharedNorm;
}

function norm(model: Model, name: string): ParameterSpec[] {
  const gain = constant(`${name}.weight`, model.hidden, 1);
  return model.norm === "rmsnorm" ? [gain] : [gain, constant(`${name}.bias`, model.hidden, 0)];
}

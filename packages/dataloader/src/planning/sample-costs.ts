/** What the planner knows of a sample, and what it makes of it: metadata in, work out. */
import { type SequenceCost, sequenceCost } from "../balance.ts";
import { type EncoderShapes, type Part, partTokens, sampleWork } from "../modality.ts";

/** What a source tells of a sample without handing it over. */
export interface SampleMetadata {
  /** Tokens in the backbone. */
  readonly tokens: number;
  /** Its parts in order, where there are others than text. */
  readonly parts?: readonly Part[];
}

/** Kinds of data with an encoder of their own. */
export type EncoderModality = Exclude<Part["kind"], "text">;

/** Work of a sample, in any unit, the same for all samples. */
export interface SampleCosts {
  readonly backbone: number;
  /** Work of each part that an encoder sees, in order. */
  readonly parts: readonly { readonly modality: EncoderModality; readonly cost: number }[];
}

/** Costs of text, by its length. */
export function textCosts(cost: SequenceCost): (sample: SampleMetadata) => SampleCosts {
  return ({ tokens }) => ({ backbone: sequenceCost(cost, [tokens]), parts: [] });
}

/** Costs of samples of several modalities: each part in its encoder, all tokens in the backbone. */
export function multimodalCosts(
  shapes: EncoderShapes,
  costs: { readonly encoder: SequenceCost; readonly backbone: SequenceCost },
): (sample: SampleMetadata) => SampleCosts {
  return ({ tokens, parts = [] }) => ({
    backbone: sequenceCost(costs.backbone, [tokens]),
    parts: parts.flatMap((part) =>
      part.kind === "text"
        ? []
        : [{ modality: part.kind, cost: sampleWork([part], shapes, costs).encoder }],
    ),
  });
}

/** Metadata of a sample from its parts: the backbone's tokens are those the parts become. */
export function metadataOf(parts: readonly Part[], shapes: EncoderShapes): SampleMetadata {
  const tokens = parts.reduce((sum, part) => sum + partTokens(part, shapes).backbone, 0);
  return { tokens, parts };
}

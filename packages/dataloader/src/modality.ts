/**
 * Samples with parts of several modalities, as metadata: what each part costs an encoder and how many
 * tokens of the backbone it becomes. Patch arithmetic is that of vision transformers (Dosovitskiy et
 * al., An image is worth 16x16 words, 2021).
 */
import { TriremeError } from "@trireme/core";
import { type SequenceCost, sequenceCost } from "./balance.ts";

/** A part of a sample. Sizes in pixels and seconds of the decoded signal. */
export type Part =
  | { readonly kind: "text"; readonly tokens: number }
  | { readonly kind: "image"; readonly width: number; readonly height: number }
  | {
      readonly kind: "video";
      readonly width: number;
      readonly height: number;
      readonly frames: number;
    }
  | { readonly kind: "audio"; readonly seconds: number };

/** How encoders cut what they are given. */
export interface EncoderShapes {
  /** Side of a square patch, in pixels. */
  readonly patch: number;
  /** Patches along each side that are merged into one token of the backbone; 1 for none. */
  readonly merge: number;
  /** Frames of a video that make up one patch in time; 1 for none. */
  readonly temporalPatch: number;
  /** Frames of an audio encoder in a second. */
  readonly audioFrames: number;
  /** Frames of audio that are merged into one token of the backbone. */
  readonly audioMerge: number;
}

/** Tokens of a part: what its encoder attends over, and what reaches the backbone. */
export interface PartTokens {
  readonly encoder: number;
  readonly backbone: number;
}

/**
 * Tokens of a part. A side that is no whole number of (merged) patches is padded up to one; text has
 * no encoder.
 */
export function partTokens(part: Part, shapes: EncoderShapes): PartTokens {
  const sizes = Object.entries(part).filter(([name]) => name !== "kind");
  for (const [name, value] of sizes) {
    if (typeof value !== "number" || !(value >= 0 && value < Infinity)) {
      throw new TriremeError(
        "MODALITY",
        `${part.kind} with ${name} ${value}; sizes are finite and at least 0`,
      );
    }
  }
  for (const [name, value] of Object.entries(shapes)) {
    if (!(value > 0 && value < Infinity)) {
      throw new TriremeError(
        "MODALITY",
        `an encoder with ${name} ${value}; its shapes are finite and above 0`,
      );
    }
  }
  switch (part.kind) {
    case "text":
      return { encoder: 0, backbone: part.tokens };
    case "image":
      return patches(part.width, part.height, 1, shapes);
    case "video":
      return patches(
        part.width,
        part.height,
        Math.ceil(part.frames / shapes.temporalPatch),
        shapes,
      );
    case "audio": {
      const frames = Math.ceil(part.seconds * shapes.audioFrames);
      return { encoder: frames, backbone: Math.ceil(frames / shapes.audioMerge) };
    }
  }
}

function patches(
  width: number,
  height: number,
  times: number,
  { patch, merge }: EncoderShapes,
): PartTokens {
  const across = Math.ceil(width / (patch * merge));
  const down = Math.ceil(height / (patch * merge));
  const backbone = across * down * times;
  return { encoder: backbone * merge * merge, backbone };
}

/** Work of a sample in the encoders and in the backbone, by the caller's cost coefficients. */
export interface SampleWork {
  readonly encoder: number;
  readonly backbone: number;
  /** Tokens of the sample in the backbone: what packing counts. */
  readonly tokens: number;
}

/**
 * Work of a sample: each part by itself in its encoder (attention stays within an image or a clip, and
 * within each patch of time of a video), all parts together in the backbone.
 */
export function sampleWork(
  parts: readonly Part[],
  shapes: EncoderShapes,
  costs: { readonly encoder: SequenceCost; readonly backbone: SequenceCost },
): SampleWork {
  let encoder = 0;
  let tokens = 0;
  for (const part of parts) {
    const counts = partTokens(part, shapes);
    const times =
      part.kind === "video" ? Math.max(1, Math.ceil(part.frames / shapes.temporalPatch)) : 1;
    encoder += times * sequenceCost(costs.encoder, [counts.encoder / times]);
    tokens += counts.backbone;
  }
  return { encoder, backbone: sequenceCost(costs.backbone, [tokens]), tokens };
}

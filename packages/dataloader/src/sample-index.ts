/**
 * Megatron's index of samples over documents in a given order: where each sample of `sequence` tokens
 * and one label more starts, as a place in the order and an offset in that document. Sample k starts
 * at token k · sequence of the documents laid end to end (megatron/core/datasets/helpers.cpp,
 * `build_sample_idx`). All arithmetic is exact up to 2⁵³ tokens.
 */
import { TriremeError } from "@trireme/core";

/** What is to be cut into samples. */
export interface SampleIndexOptions {
  /** Tokens of each document. */
  readonly sizes: ArrayLike<number>;
  /** Documents in the order in which they are read; several epochs follow one another. */
  readonly order: ArrayLike<number>;
  /** Tokens of a sample. */
  readonly sequence: number;
  /** Whether the tokens after the last whole sample make a shorter one. Default false. */
  readonly keepPartial?: boolean;
}

/** One row per sample and one for the end of the last. */
export interface SampleIndex {
  /** Samples: one less than rows. */
  readonly samples: number;
  /** Places in the order. */
  readonly places: Float64Array;
  /** Offsets in the documents there, in tokens. */
  readonly offsets: Float64Array;
}

/** Builds the index. O(documents in the order + samples). */
export function sampleIndex(options: SampleIndexOptions): SampleIndex {
  const { sizes, order, sequence, keepPartial = false } = options;
  if (!Number.isSafeInteger(sequence) || sequence < 1) {
    throw new TriremeError("SAMPLE_INDEX", `sequence ${sequence} is not a positive integer`);
  }
  let tokens = 0;
  for (let i = 0; i < order.length; i++) {
    const size = sizes[order[i]!];
    if (size === undefined || !Number.isSafeInteger(size) || size < 0) {
      throw new TriremeError(
        "SAMPLE_INDEX",
        `document ${order[i]} at place ${i} of the order has size ${size}`,
      );
    }
    tokens += size;
  }
  const predicted = Math.max(0, tokens - 1);
  const whole = (predicted - (predicted % sequence)) / sequence;
  const samples = keepPartial && predicted % sequence > 0 ? whole + 1 : whole;
  const places = new Float64Array(samples + 1);
  const offsets = new Float64Array(samples + 1);
  if (tokens === 0) return { samples, places, offsets };
  let place = 0;
  let start = 0;
  for (let row = 0; row <= samples; row++) {
    // The end of a partial sample is the last token there is.
    const target = Math.min(row * sequence, tokens - 1);
    while (start + sizes[order[place]!]! <= target) start += sizes[order[place++]!]!;
    places[row] = place;
    offsets[row] = target - start;
  }
  return { samples, places, offsets };
}

/**
 * The least number of epochs that give `samples` samples; every sample overlaps the next by its label,
 * so e epochs of t tokens give ⌊(e · t − 1) / sequence⌋.
 */
export function epochsFor(tokensPerEpoch: number, sequence: number, samples: number): number {
  if (!Number.isSafeInteger(tokensPerEpoch) || tokensPerEpoch < 1) {
    throw new TriremeError("SAMPLE_INDEX", `an epoch of ${tokensPerEpoch} tokens gives no samples`);
  }
  if (!Number.isSafeInteger(sequence) || sequence < 1) {
    throw new TriremeError("SAMPLE_INDEX", `sequence ${sequence} is not a positive integer`);
  }
  if (!Number.isSafeInteger(samples) || samples < 0) {
    throw new TriremeError("SAMPLE_INDEX", `${samples} samples; use a count`);
  }
  const needed = samples * sequence + 1;
  if (!Number.isSafeInteger(needed)) {
    throw new TriremeError(
      "SAMPLE_INDEX",
      `${samples} samples of ${sequence} tokens are above 2^53 tokens`,
    );
  }
  return samples === 0
    ? 0
    : (needed - (needed % tokensPerEpoch)) / tokensPerEpoch + (needed % tokensPerEpoch > 0 ? 1 : 0);
}

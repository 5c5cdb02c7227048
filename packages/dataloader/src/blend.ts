/**
 * Which source each sample of a mixture comes from. The rule is Megatron-LM's: at sample i take the
 * source whose share falls furthest behind, that is with the largest w·max(i, 1) − taken, the first of
 * equals (megatron/core/datasets/helpers.cpp, `build_blending_indices`). No randomness: the sources'
 * own orders are shuffled.
 */
import { TriremeError } from "@trireme/core";

/** What to do when a source has been read to its end. */
export type Exhausted =
  /** An error that names the source and the numbers. */
  | "refuse"
  /** Its positions run on: its next epoch. */
  | "repeat"
  /** It leaves the mixture, the others keep their proportions. */
  | "drop"
  /** The mixture ends. */
  | "stop";

/** A mixture to be made. */
export interface BlendOptions {
  /** Relative shares, not negative, at least one positive; they need not add up to 1. */
  readonly weights: readonly number[];
  /** Samples wanted. */
  readonly length: number;
  /** Samples each source has; without it sources never end. */
  readonly sizes?: readonly number[];
  /** Default "refuse". */
  readonly exhausted?: Exhausted;
}

/** A mixture: sample i is sample `positions[i]` in the order of source `sources[i]`. */
export interface Blend {
  readonly sources: Int32Array;
  /** Positions in each source's own order; from its size on they are of its next epochs. */
  readonly positions: Float64Array;
  /** Samples taken of each source. */
  readonly taken: Float64Array;
}

/** Makes a mixture. O(length · sources). */
export function blend(options: BlendOptions): Blend {
  const { length, sizes, exhausted = "refuse" } = options;
  let weights = normalized(options.weights);
  if (!Number.isSafeInteger(length) || length < 0) {
    throw new TriremeError("BLEND", `length ${length} is not a non-negative integer`);
  }
  if (sizes !== undefined && sizes.length !== weights.length) {
    throw new TriremeError("BLEND", `${sizes.length} sizes for ${weights.length} weights`);
  }
  checkSizes("BLEND", sizes);
  const sources = new Int32Array(length);
  const positions = new Float64Array(length);
  const taken = new Float64Array(weights.length);
  // Where shares are counted from: moved when a source drops out, so that the rest start level.
  let since = 0;
  let base = new Float64Array(weights.length);
  for (let i = 0; i < length; i++) {
    const due = Math.max(i - since, 1);
    let source = furthestBehind(weights, due, taken, base);
    const size = sizes?.[source] ?? Infinity;
    if (taken[source]! >= size && exhausted !== "repeat") {
      if (exhausted === "stop") return cut(sources, positions, taken, i);
      if (exhausted === "refuse") {
        throw new TriremeError(
          "BLEND",
          `source ${source} has ${size} samples, but sample ${i} of ${length} wants another of it; use a smaller length or weight, or exhausted "repeat", "drop" or "stop"`,
        );
      }
      const left = weights.map((weight, d) => (taken[d]! >= (sizes?.[d] ?? Infinity) ? 0 : weight));
      if (left.every((weight) => weight === 0)) return cut(sources, positions, taken, i);
      weights = normalized(left);
      since = i;
      base = taken.slice();
      source = furthestBehind(weights, 1, taken, base);
    }
    sources[i] = source;
    positions[i] = taken[source]!;
    taken[source]!++;
  }
  return { sources, positions, taken };
}

/**
 * Every sample of every source exactly once, spread evenly: weights in proportion to the sizes, and a
 * source that is used up is not asked again (`build_exhaustive_blending_indices`).
 */
export function exhaustiveBlend(sizes: readonly number[]): Blend {
  const length = sizes.reduce((sum, size) => sum + size, 0);
  if (
    sizes.some((size) => !Number.isSafeInteger(size) || size < 0) ||
    !Number.isSafeInteger(length)
  ) {
    throw new TriremeError("BLEND", `sizes [${sizes.join(", ")}] are not counts with an exact sum`);
  }
  const sources = new Int32Array(length);
  const positions = new Float64Array(length);
  const taken = new Float64Array(sizes.length);
  const none = new Float64Array(sizes.length);
  const weights = sizes.map((size) => size / length);
  for (let i = 0; i < length; i++) {
    const open = weights.map((weight, d) => (taken[d]! < sizes[d]! ? weight : 0));
    const source = furthestBehind(open, Math.max(i, 1), taken, none);
    sources[i] = source;
    positions[i] = taken[source]!;
    taken[source]!++;
  }
  return { sources, positions, taken };
}

/** The source with the largest weight · due − (taken − base), among those with a weight; -1 for none. */
export function furthestBehind(
  weights: readonly number[],
  due: number,
  taken: ArrayLike<number>,
  base: ArrayLike<number>,
): number {
  let best = -1;
  let most = -Infinity;
  for (let d = 0; d < weights.length; d++) {
    if (weights[d] === 0) continue;
    const behind = weights[d]! * due - (taken[d]! - base[d]!);
    if (behind > most) {
      most = behind;
      best = d;
    }
  }
  return best;
}

function normalized(weights: readonly number[]): readonly number[] {
  const sum = weights.reduce((total, weight) => total + weight, 0);
  if (!(sum > 0 && sum < Infinity) || weights.some((weight) => !(weight >= 0))) {
    throw new TriremeError(
      "BLEND",
      `weights [${weights.join(", ")}]: each must be at least 0, and their sum positive`,
    );
  }
  return weights.map((weight) => weight / sum);
}

function cut(
  sources: Int32Array,
  positions: Float64Array,
  taken: Float64Array,
  length: number,
): Blend {
  return { sources: sources.slice(0, length), positions: positions.slice(0, length), taken };
}

/** Throws unless each size is a count, or Infinity for a source without an end. */
export function checkSizes(code: string, sizes: readonly number[] | undefined): void {
  const odd = sizes?.findIndex(
    (size) => !((Number.isInteger(size) && size >= 0) || size === Infinity),
  );
  if (sizes === undefined || odd === undefined || odd === -1) return;
  throw new TriremeError(
    code,
    `source ${odd} has ${sizes[odd]} samples; use a count, or Infinity for one without an end`,
  );
}

/**
 * How many loaders each source of a mixture gets. A source needs loaders in proportion to the samples
 * drawn from it and to what one of them costs; as weights move, so do the loaders (OVERLORD's
 * AutoScaler, arXiv:2504.09844).
 */
import { TriremeError, type Bytes, type Seconds } from "@trireme/core";

/** A source as profiling found it. */
export interface SourceProfile {
  /** Time to read and transform a sample on one loader. */
  readonly secondsPerSample: Seconds;
  /** Memory that a loader of it holds: file handles, index, buffers. */
  readonly bytesPerLoader: Bytes;
}

/** What is wanted of the loaders. */
export interface ScalingOptions {
  readonly sources: readonly SourceProfile[];
  /** Share of the samples that comes from each source; adds up to 1. */
  readonly weights: readonly number[];
  /** Samples a second that training takes. */
  readonly samplesPerSecond: number;
  /** Spare capacity, as a factor of what is needed. Default 1.2. */
  readonly headroom?: number;
}

/** Loaders for each source. */
export interface Scaling {
  /** 0 where a source has no weight, else at least 1. */
  readonly loaders: Int32Array;
  /** Samples a second that all of them together give, at these weights. */
  readonly capacity: number;
  /** Memory of all loaders where each source has its own: what disaggregation holds. */
  readonly memory: Bytes;
}

/** The fewest loaders with which no source falls behind. */
export function scaleSources(options: ScalingOptions): Scaling {
  const { sources, weights, samplesPerSecond, headroom = 1.2 } = options;
  if (weights.length !== sources.length)
    throw new TriremeError("SCALING", `${weights.length} weights for ${sources.length} sources`);
  if (
    !(samplesPerSecond >= 0 && samplesPerSecond < Infinity && headroom >= 1 && headroom < Infinity)
  ) {
    throw new TriremeError(
      "SCALING",
      `${samplesPerSecond} samples/s with a headroom of ${headroom}; use finite numbers of at least 0 and at least 1`,
    );
  }
  const loaders = new Int32Array(sources.length);
  let capacity = Infinity;
  let memory = 0;
  sources.forEach(({ secondsPerSample, bytesPerLoader }, s) => {
    const weight = weights[s]!;
    if (!(weight >= 0 && weight <= 1))
      throw new TriremeError("SCALING", `source ${s} has weight ${weight}; weights lie in 0..1`);
    if (!(secondsPerSample > 0 && secondsPerSample < Infinity && bytesPerLoader >= 0)) {
      throw new TriremeError(
        "SCALING",
        `source ${s} takes ${secondsPerSample} s a sample and ${bytesPerLoader} bytes a loader; use more than 0 and at least 0`,
      );
    }
    if (weight === 0) return;
    const wanted = Math.max(1, Math.ceil(samplesPerSecond * weight * secondsPerSample * headroom));
    if (wanted > 0x7fffffff)
      throw new TriremeError("SCALING", `source ${s} would need ${wanted} loaders; at most 2^31-1`);
    loaders[s] = wanted;
    // The mixture flows as fast as its slowest source lets it.
    capacity = Math.min(capacity, loaders[s] / (secondsPerSample * weight));
    memory += loaders[s] * bytesPerLoader;
  });
  return { loaders, capacity: capacity === Infinity ? 0 : capacity, memory };
}

/** Weights as a moving average: the newest counts `rate`, so that one odd step does not move loaders. */
export function smoothWeights(
  before: readonly number[],
  now: readonly number[],
  rate: number,
): readonly number[] {
  if (!(rate > 0 && rate <= 1)) throw new TriremeError("SCALING", `rate ${rate} is outside (0, 1]`);
  return before.map((weight, s) => weight + rate * ((now[s] ?? 0) - weight));
}

/** What a source loader holds: samples by their position in the source's own order. */
import { TriremeError, hash32 } from "@trireme/core";
import { epochKey, keyedPermutation } from "../keyed-permutation.ts";
import type { SampleMetadata } from "../planning/sample-costs.ts";
import type { TokenSource } from "../token-source.ts";

/** A source of samples. Positions run on from epoch to epoch without end. */
export interface SampleSource {
  /** Tells its data and order from others. */
  readonly fingerprint: string;
  /** Samples of one epoch; undefined where only reading to the end would tell. */
  readonly samples: number | undefined;
  /** What the planner is told. */
  describe(position: number): SampleMetadata | Promise<SampleMetadata>;
  /** The tokens: as many as `describe` says. */
  read(position: number): Int32Array | Promise<Int32Array>;
  /** Says that no position below will be asked for again. A source that keeps nothing ahead ignores it. */
  release?(position: number): void;
  /** Where it stands, to begin from there another time; a source read anywhere has no such state. */
  snapshot?(): SourceSnapshot;
}

/** A place in a source from which it can be read on: the data half of a differential checkpoint. */
export interface SourceSnapshot {
  /** The first position that can be read after restoring. */
  readonly position: number;
  /** The source's own: a file and an offset in it, whatever it needs. JSON. */
  readonly cursor: unknown;
}

/** Documents of a token stream as samples, in another order each epoch. 8 bytes of memory a document. */
export function documentSamples(
  source: TokenSource,
  ends: Float64Array,
  seed: number,
): SampleSource {
  const samples = ends.length;
  if (samples === 0)
    throw new TriremeError("SOURCE", "a source without documents; leave it out of the mixture");
  let epoch = -1;
  let order = (i: number): number => i;
  const itemAt = (position: number): number => {
    const wanted = Math.floor(position / samples);
    if (wanted !== epoch) {
      order = keyedPermutation(samples, epochKey(seed, wanted));
      epoch = wanted;
    }
    return order(position - wanted * samples);
  };
  const startOf = (item: number): number => (item === 0 ? 0 : ends[item - 1]!);
  return {
    fingerprint: source.fingerprint,
    samples,
    describe(position) {
      const item = itemAt(position);
      return { tokens: ends[item]! - startOf(item) };
    },
    read(position) {
      const item = itemAt(position);
      const start = startOf(item);
      const tokens = new Int32Array(ends[item]! - start);
      source.read(start, tokens);
      return tokens;
    },
  };
}

/** A seed for one source of a run: of its name, so that a source more or less moves no other. */
export function sourceSeed(seed: number, name: string): number {
  const letters = Array.from(name, (letter) => letter.codePointAt(0)!);
  const words = [seed, Math.floor(seed / 2 ** 32), ...letters];
  return hash32(...words, 0) * 2 ** 21 + (hash32(...words, 1) >>> 11);
}

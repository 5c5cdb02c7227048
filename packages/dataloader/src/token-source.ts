/** Tokens that need not be in memory: one stream, read anywhere, in files of several formats. */
import { TriremeError } from "@trireme/core";
import type { ByteReader } from "./byte-reader.ts";
import { FormatError } from "./format-error.ts";
import type { MegatronIndex } from "./megatron-index.ts";
import { type TokenType, decodeTokens, tokenWidth } from "./token-type.ts";

/** A stream of token ids with random access. */
export interface TokenSource {
  /** Tokens there are. */
  readonly length: number;
  /** Tells this data from other data; part of a loader's state. */
  readonly fingerprint: string;
  /** Fills `into` with the tokens from `start` on; the range lies within `length`. */
  read(start: number, into: Int32Array): void;
}

/** Tokens as elements of a type from `offset` to the end of what `reader` has. */
export function elementSource(
  reader: ByteReader,
  type: TokenType,
  offset: number,
  fingerprint: string,
): TokenSource {
  const width = tokenWidth(type);
  const length = (reader.size - offset) / width;
  if (!Number.isInteger(length)) {
    throw new FormatError(
      reader.name,
      undefined,
      `${reader.size - offset} bytes of tokens are no whole number of ${width}-byte elements: the file is cut short`,
    );
  }
  // Grows to the longest read, so that a loader of samples of one size allocates once.
  let scratch = new Uint8Array(0);
  return {
    length,
    fingerprint,
    read(start, into) {
      const bytes = into.length * width;
      if (scratch.byteLength < bytes) scratch = new Uint8Array(bytes);
      const target = scratch.subarray(0, bytes);
      reader.read(offset + start * width, target);
      const strange = decodeTokens(type, target, into);
      if (strange !== -1) {
        const at = offset + (start + strange) * width;
        throw new FormatError(reader.name, at, `token ${start + strange} is no id in 0..2^31-1`);
      }
    },
  };
}

/**
 * The tokens of a Megatron data file, whose index was read for its size. The fingerprint is of the
 * index (lengths, documents, type) and a sample of the data: 64 blocks of up to 4 KiB spread over it.
 */
export function megatronSource(index: MegatronIndex, data: ByteReader): TokenSource {
  const print = sampledFingerprint(data, [
    index.type.length,
    index.type.charCodeAt(0),
    tokenWidth(index.type),
    index.lengths.length,
    index.documents.length,
    ...sums(index.lengths),
    ...sums(index.documents),
  ]);
  return elementSource(data, index.type, 0, print);
}

/** One stream after another. */
export function concatenateSources(sources: readonly TokenSource[]): TokenSource {
  if (sources.length === 0) throw new TriremeError("DATASET", "no sources to concatenate; give at least one");
  const ends: number[] = [];
  let length = 0;
  for (const source of sources) ends.push((length += source.length));
  return {
    length,
    fingerprint: textFingerprint(sources.map((source) => `${source.length}:${source.fingerprint}`).join(" ")),
    read(start, into) {
      let k = ends.findIndex((end) => end > start);
      for (let done = 0; done < into.length; k++) {
        const source = sources[k]!;
        const within = start + done - (ends[k]! - source.length);
        const take = Math.min(into.length - done, source.length - within);
        source.read(within, into.subarray(done, done + take));
        done += take;
      }
    },
  };
}

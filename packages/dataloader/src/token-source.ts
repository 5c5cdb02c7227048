/** Tokens that need not be in memory: one stream, read anywhere, in files of several formats. */
import { TriremeError } from "@trireme/core";
import { type ByteReader, readAhead } from "./byte-reader.ts";
import { FormatError } from "./format-error.ts";
import type { MegatronIndex } from "./megatron-index.ts";
import { fingerprintTexts, fingerprintValues, sampledBytes, wordLists } from "./fingerprint.ts";
import type { TokenDataset } from "./token-dataset.ts";
import { type TokenType, decodeTokens, tokenTypeCode, tokenWidth } from "./token-type.ts";

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
  const read = readAhead(reader);
  return {
    length,
    fingerprint,
    read(start, into) {
      const strange = decodeTokens(type, read(offset + start * width, into.length * width), into);
      if (strange !== -1) {
        const at = offset + (start + strange) * width;
        throw new FormatError(reader.name, at, `token ${start + strange} is no id in 0..2^31-1`);
      }
    },
  };
}

/**
 * The tokens of a Megatron data file. The fingerprint is over the index and, of the data, what
 * `sampledBytes` takes of it.
 */
export function megatronSource(index: MegatronIndex, data: ByteReader): TokenSource {
  const { type, lengths, documents } = index;
  const head = [tokenTypeCode(type)];
  return elementSource(
    data,
    type,
    0,
    fingerprintValues([head, lengths, ...wordLists(documents), ...sampledBytes(data)]),
  );
}

/** The tokens of a dataset in memory. */
export function datasetSource({ tokens, fingerprint }: TokenDataset): TokenSource {
  return {
    length: tokens.length,
    fingerprint,
    read: (start, into) => into.set(tokens.subarray(start, start + into.length)),
  };
}

/** One stream after another. */
export function concatenateSources(sources: readonly TokenSource[]): TokenSource {
  if (sources.length === 0)
    throw new TriremeError("DATASET", "no sources to concatenate; give at least one");
  const ends: number[] = [];
  let length = 0;
  for (const source of sources) ends.push((length += source.length));
  return {
    length,
    fingerprint: fingerprintTexts(sources.map((source) => source.fingerprint)),
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

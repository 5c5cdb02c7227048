/**
 * Bytes with random access, wherever they lie. Formats read through this, so that they neither know
 * nor care about files; offsets are plain numbers, exact up to 2⁵³.
 */
import { FormatError } from "./format-error.ts";

/** Something with a size that can be read anywhere. */
export interface ByteReader {
  /** Path or name, for errors. */
  readonly name: string;
  /** Bytes there are. */
  readonly size: number;
  /** Fills `into` with the bytes from `offset` on; the range lies within `size`. */
  read(offset: number, into: Uint8Array): void;
}

/** Bytes in memory as a reader. */
export function memoryReader(name: string, bytes: Uint8Array): ByteReader {
  return {
    name,
    size: bytes.byteLength,
    read(offset, into) {
      into.set(bytes.subarray(offset, offset + into.byteLength));
    },
  };
}

/** A copy of `length` bytes from `offset` on; a range that reaches past the end is refused. */
export function readBytes(
  reader: ByteReader,
  offset: number,
  length: number,
): Uint8Array<ArrayBuffer> {
  if (offset + length > reader.size) {
    throw new FormatError(
      reader.name,
      offset,
      `${length} bytes are needed here, but the file ends at ${reader.size}: it is cut short`,
    );
  }
  const bytes = new Uint8Array(length);
  reader.read(offset, bytes);
  return bytes;
}

/** Bytes read at once where reads follow one another: few calls, yet within the core's cache. */
const aheadBytes = 2 ** 18;

/**
 * Reads of a reader that go ahead while they follow one another, and exactly where they jump. Gives a
 * view that the next call overwrites.
 */
export function readAhead(reader: ByteReader): (offset: number, length: number) => Uint8Array {
  let buffer = new Uint8Array(0);
  // What the buffer holds: the file's bytes from `start` to `end`.
  let start = 0;
  let end = 0;
  /** Where the last range ended, and so where one that follows starts; near it for overlaps. */
  let next = -1;
  return (offset, length) => {
    const stop = offset + length;
    if (offset < start || stop > end) {
      // Samples overlap by their last label, so "follows" allows a step back within the last range.
      const follows = offset <= next && stop > next;
      const wanted = follows
        ? Math.max(length, Math.min(aheadBytes, reader.size - offset))
        : length;
      if (buffer.byteLength < wanted) buffer = new Uint8Array(wanted);
      // Holds nothing while it is being filled: a read that fails must not leave half of it valid.
      end = 0;
      reader.read(offset, buffer.subarray(0, wanted));
      start = offset;
      end = offset + wanted;
    }
    next = stop;
    return buffer.subarray(offset - start, stop - start);
  };
}

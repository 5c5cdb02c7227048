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
export function readBytes(reader: ByteReader, offset: number, length: number): Uint8Array<ArrayBuffer> {
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

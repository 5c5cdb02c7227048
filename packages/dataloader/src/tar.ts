/**
 * Tar archives, as far as data sets use them: regular files in ustar (POSIX.1-1988), with the long
 * names, sizes and paths of pax (POSIX.1-2001) and of GNU tar. Every header's checksum is checked.
 */
import { type ByteReader, readBytes } from "./byte-reader.ts";
import { FormatError } from "./format-error.ts";

const block = 512;

/** A regular file in an archive; its content is read when wanted. */
export interface TarEntry {
  readonly name: string;
  /** Where its content starts in the archive, in bytes. */
  readonly offset: number;
  /** Bytes of content. */
  readonly size: number;
}

/** The regular files of an archive, in order; directories, links and devices are passed over. */
export function* readTar(reader: ByteReader): Generator<TarEntry> {
  let at = 0;
  // What extended headers say of the entry that follows them.
  let long: { path?: string; size?: number } = {};
  while (at < reader.size) {
    const head = readBytes(reader, at, block);
    if (head.every((byte) => byte === 0)) {
      // Two blocks of zeros end an archive; one at the very end is an old habit.
      if (
        at + block >= reader.size ||
        readBytes(reader, at + block, block).every((byte) => byte === 0)
      )
        return;
      throw new FormatError(reader.name, at, "a block of zeros in the middle of the archive");
    }
    checkSum(reader.name, at, head);
    const type = String.fromCharCode(head[156]!);
    const size = long.size ?? octal(reader.name, at, head, 124, 12);
    const offset = at + block;
    if (offset + size > reader.size) {
      throw new FormatError(
        reader.name,
        at,
        `an entry of ${size} bytes reaches past the end at ${reader.size}: the archive is cut short`,
      );
    }
    switch (type) {
      case "x":
        Object.assign(long, paxRecords(reader, offset, size));
        break;
      case "L":
        long.path = text(readBytes(reader, offset, size));
        break;
      // Of the whole archive, and GNU's long link names: nothing in them that files need.
      case "g":
      case "K":
        break;
      default:
        if (type === "0" || type === "\0" || type === "7") {
          const name = long.path ?? nameOf(head);
          // Archives older than ustar know directories by the slash at the end alone.
          if (!(type === "\0" && name.endsWith("/"))) yield { name, offset, size };
        }
        long = {};
    }
    at = offset + Math.ceil(size / block) * block;
  }
  // An archive that ends without its blocks of zeros may have lost entries behind the last.
  throw new FormatError(
    reader.name,
    reader.size,
    "the archive does not end with a block of zeros: it is cut short",
  );
}

/** The content of an entry. */
export function tarContent(
  reader: ByteReader,
  { offset, size }: TarEntry,
): Uint8Array<ArrayBuffer> {
  return readBytes(reader, offset, size);
}

function nameOf(head: Uint8Array): string {
  const name = text(head.subarray(0, 100));
  const isUstar = text(head.subarray(257, 263)).startsWith("ustar");
  // GNU keeps other things where ustar keeps the prefix; it ends its magic with spaces.
  const prefix = isUstar && head[262] === 0 ? text(head.subarray(345, 500)) : "";
  return prefix === "" ? name : `${prefix}/${name}`;
}

function checkSum(name: string, at: number, head: Uint8Array): void {
  const stored = octal(name, at, head, 148, 8);
  let sum = 8 * 0x20;
  head.forEach((byte, i) => {
    if (i < 148 || i >= 156) sum += byte;
  });
  if (sum !== stored)
    throw new FormatError(
      name,
      at,
      `no tar header: its checksum is ${stored}, its bytes give ${sum}`,
    );
}

/** A number in octal digits, or, with the first bit set, in base 256 (GNU, for 8 GiB and more). */
function octal(name: string, at: number, head: Uint8Array, offset: number, width: number): number {
  const field = head.subarray(offset, offset + width);
  if ((field[0]! & 0x80) !== 0) {
    const value = field.reduce((sum, byte, i) => sum * 256 + (i === 0 ? byte & 0x7f : byte), 0);
    if (!Number.isSafeInteger(value))
      throw new FormatError(name, at + offset, "a size above 2^53-1");
    return value;
  }
  const digits = text(field).trim();
  if (!/^[0-7]*$/.test(digits))
    throw new FormatError(name, at + offset, `${JSON.stringify(digits)} is no octal number`);
  return digits === "" ? 0 : Number.parseInt(digits, 8);
}

function paxRecords(
  reader: ByteReader,
  offset: number,
  size: number,
): { path?: string; size?: number } {
  const bytes = readBytes(reader, offset, size);
  const found: { path?: string; size?: number } = {};
  for (let at = 0; at < size;) {
    const space = bytes.indexOf(0x20, at);
    const length = Number(new TextDecoder().decode(bytes.subarray(at, Math.max(at, space))));
    const record = bytes.subarray(space + 1, at + length - 1);
    const equals = record.indexOf(0x3d);
    if (!(length > 0) || at + length > size || bytes[at + length - 1] !== 0x0a || equals === -1) {
      throw new FormatError(reader.name, offset + at, "a malformed extended header");
    }
    const key = new TextDecoder().decode(record.subarray(0, equals));
    const value = new TextDecoder().decode(record.subarray(equals + 1));
    if (key === "path") found.path = value;
    if (key === "size") found.size = /^\d+$/.test(value) ? Number(value) : NaN;
    at += length;
  }
  // A negative one would lead back to this header, for ever.
  if (found.size !== undefined && !Number.isSafeInteger(found.size)) {
    throw new FormatError(reader.name, offset, "the extended header has a size that is no count");
  }
  return found;
}

/** Text up to the first NUL. */
function text(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  return new TextDecoder().decode(end === -1 ? bytes : bytes.subarray(0, end));
}

/** Tar archives of regular files, written so that equal files give equal bytes. */
import { TriremeError } from "@trireme/core";

const block = 512;

/**
 * The bytes of an archive of files, in order. Headers are ustar, owner and time zero and mode 444, so
 * that equal files give equal bytes; names that do not fit, and names beyond ASCII, get a pax head.
 */
export function encodeTar(
  files: Iterable<{ readonly name: string; readonly data: Uint8Array }>,
): Uint8Array<ArrayBuffer> {
  const parts: Uint8Array[] = [];
  for (const { name, data } of files) {
    const parted = partName(name);
    if (parted === undefined) {
      const record = paxRecord("path", name);
      parts.push(
        header({ name: "././@PaxHeader", prefix: "" }, record.length, "x"),
        record,
        padding(record.length),
      );
    }
    const shown = parted ?? { name: name.replace(/[^ -~]/gu, "?").slice(0, 100), prefix: "" };
    parts.push(header(shown, data.length, "0"), data, padding(data.length));
  }
  // Two blocks end it, padded to the record of 20 blocks that tapes had and tar still writes.
  const length = parts.reduce((sum, part) => sum + part.length, 0) + 2 * block;
  const archive = new Uint8Array(Math.ceil(length / (20 * block)) * 20 * block);
  let at = 0;
  for (const part of parts) {
    archive.set(part, at);
    at += part.length;
  }
  return archive;
}

function header(path: { name: string; prefix: string }, size: number, type: string): Uint8Array {
  if (size >= 8 ** 11)
    throw new TriremeError("FORMAT", `${path.name}: ${size} bytes; an entry has below 8 GiB`);
  const bytes = new Uint8Array(block);
  const put = (offset: number, value: string): void =>
    bytes.set(new TextEncoder().encode(value), offset);
  const number = (value: number, width: number): string =>
    `${value.toString(8).padStart(width - 1, "0")}\0`;
  put(0, path.name);
  put(100, number(0o444, 8));
  put(108, number(0, 8));
  put(116, number(0, 8));
  put(124, number(size, 12));
  put(136, number(0, 12));
  put(148, "        ");
  put(156, type);
  put(257, "ustar\x0000");
  put(345, path.prefix);
  const sum = bytes.reduce((total, byte) => total + byte, 0);
  put(148, `${sum.toString(8).padStart(6, "0")}\0 `);
  return bytes;
}

/** A name as ustar holds it: up to 100 bytes, with up to 155 more before a slash; else undefined. */
function partName(name: string): { name: string; prefix: string } | undefined {
  if (!/^[ -~]+$/.test(name)) return undefined;
  if (name.length <= 100) return { name, prefix: "" };
  const cut = name.lastIndexOf("/", 155);
  const rest = name.slice(cut + 1);
  return cut > 0 && rest.length > 0 && rest.length <= 100
    ? { name: rest, prefix: name.slice(0, cut) }
    : undefined;
}

function paxRecord(key: string, value: string): Uint8Array {
  const body = new TextEncoder().encode(` ${key}=${value}\n`);
  // The length counts its own digits.
  let length = body.length + 1;
  while (String(length).length + body.length !== length) length++;
  return new Uint8Array([...new TextEncoder().encode(String(length)), ...body]);
}

function padding(length: number): Uint8Array {
  return new Uint8Array((block - (length % block)) % block);
}

/**
 * Zstandard (RFC 8878). Node 20 has none of its own, so it is read by fzstd, which is JavaScript and
 * streams, and written by the reference implementation compiled to WebAssembly.
 */
import { TriremeError, missingPeer } from "@trireme/core";
import { FormatError } from "../format-error.ts";

const { Decompress } = await import("fzstd").catch(
  missingPeer("@trireme/dataloader/zstd", "fzstd", "0.1.1"),
);

/** The first bytes of a frame, and of a frame to be skipped (its low four bits are free). */
const magic = 0xfd2fb528;
const skippable = 0x184d2a50;

/**
 * The content of one file of frames that comes in pieces of any size, in pieces of at most 128 KiB
 * each: no more of it is held than the frames' window asks for. What is no frame, is malformed or cut
 * short is refused with the offset of the piece in which that showed. Checksums of content are passed
 * over, not compared.
 */
export async function* zstdPieces(
  name: string,
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const ready: Uint8Array[] = [];
  const stream = new Decompress((piece) => void (piece.length > 0 && ready.push(piece)));
  let offset = 0;
  let head: Uint8Array = new Uint8Array(0);
  const push = (piece: Uint8Array, last: boolean): void => {
    try {
      stream.push(piece, last);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      const cut = reason === "unexpected EOF";
      throw new FormatError(
        name,
        offset,
        cut ? "the zstd data ends within a frame: it is cut short" : `malformed zstd: ${reason}`,
        { cause },
      );
    }
  };
  for await (const piece of pieces) {
    if (head.length < 4) {
      head = joined(head, piece.subarray(0, 4 - head.length));
      if (head.length === 4) checkMagic(name, head);
    }
    // The library keeps what it is given; a stream may fill the same bytes anew.
    push(piece.slice(), false);
    offset += piece.length;
    yield* ready.splice(0);
  }
  if (head.length < 4) {
    throw new FormatError(name, 0, `${head.length} bytes; a zstd frame alone has more`);
  }
  push(new Uint8Array(0), true);
  yield* ready.splice(0);
}

/** The content of a file of frames in memory. Refuses what `zstdPieces` does. */
export async function zstdDecompress(
  name: string,
  bytes: Uint8Array,
): Promise<Uint8Array<ArrayBuffer>> {
  const parts: Uint8Array[] = [];
  let size = 0;
  for await (const part of zstdPieces(name, [bytes])) {
    parts.push(part);
    size += part.length;
  }
  const whole = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** One frame of `bytes`, with its size in its header. Levels are 1 (fast) to 22 (small). */
export async function zstdCompress(bytes: Uint8Array, level = 3): Promise<Uint8Array> {
  if (!Number.isInteger(level) || level < 1 || level > 22)
    throw new TriremeError("FORMAT", `zstd level ${level}; the levels are 1 to 22`);
  const { Zstd } = await import("@hpcc-js/wasm-zstd").catch(
    missingPeer("@trireme/dataloader/zstd", "@hpcc-js/wasm-zstd", "1.12.5"),
  );
  return (await Zstd.load()).compress(bytes, level);
}

function checkMagic(name: string, head: Uint8Array): void {
  const found = new DataView(head.buffer, head.byteOffset, 4).getUint32(0, true);
  if (found !== magic && found >>> 4 !== skippable >>> 4) {
    const shown = found.toString(16).padStart(8, "0");
    throw new FormatError(name, 0, `no zstd: it starts with 0x${shown}, a frame with 0xfd2fb528`);
  }
}

function joined(a: Uint8Array, b: Uint8Array): Uint8Array {
  const both = new Uint8Array(a.length + b.length);
  both.set(a);
  both.set(b, a.length);
  return both;
}

/** A file's content in pieces, decompressed where its name says that it is compressed. */
import { createReadStream } from "node:fs";
import { createGunzip } from "node:zlib";
import { TriremeError } from "@trireme/core";
import { FormatError } from "../format-error.ts";

/**
 * The content of `path`, of what is in it where it ends with `.gz` or `.zst` (which needs
 * `@trireme/dataloader/zstd`'s library). `onRead` is told of bytes of the file itself as they are read.
 */
export async function* readPieces(
  path: string,
  onRead?: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  const file = createReadStream(path);
  // Told to whoever reads; it may come before anyone does.
  file.on("error", () => undefined);
  // An error of the file does not pass through a pipe by itself, so each stage reads the one before it.
  const pieces = counted(path, file, onRead);
  try {
    if (path.endsWith(".gz")) yield* gunzipped(path, pieces);
    else if (path.endsWith(".zst")) {
      const { zstdPieces } = await import("../zstd/index.ts");
      yield* zstdPieces(path, pieces);
    } else yield* pieces;
  } finally {
    file.destroy();
  }
}

async function* counted(
  path: string,
  file: AsyncIterable<Uint8Array>,
  onRead?: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of file) {
      onRead?.(piece.length);
      yield piece;
    }
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
    const reasons: Readonly<Record<string, string>> = {
      ENOENT: "no such file",
      EISDIR: "is a directory; give a file",
      EACCES: "permission denied",
    };
    const reason = reasons[code] ?? (cause instanceof Error ? cause.message : String(cause));
    throw new TriremeError("DATA", `${path}: ${reason}`, { cause });
  }
}

async function* gunzipped(
  path: string,
  pieces: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  const gunzip = createGunzip();
  let failure: unknown;
  const feed = async (): Promise<void> => {
    try {
      for await (const piece of pieces) {
        if (gunzip.destroyed) return;
        if (!gunzip.write(piece)) await settled(gunzip);
      }
      gunzip.end();
    } catch (cause) {
      failure = cause;
      gunzip.destroy(cause instanceof Error ? cause : undefined);
    }
  };
  const fed = feed();
  try {
    yield* gunzip;
  } catch (cause) {
    if (failure !== undefined) throw failure;
    throw new FormatError(path, undefined, "not gzip, or cut short", { cause });
  } finally {
    gunzip.destroy();
    await fed;
  }
}

/** When a stream takes more, or never will. */
async function settled(stream: NodeJS.EventEmitter): Promise<void> {
  await new Promise<void>((done) => {
    const end = (): void => {
      stream.removeListener("drain", end).removeListener("close", end);
      done();
    };
    stream.once("drain", end).once("close", end);
  });
}

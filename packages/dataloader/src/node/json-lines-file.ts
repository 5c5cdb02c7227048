/** Documents in a file of JSON Lines, plain or compressed with gzip. */
import { createReadStream } from "node:fs";
import { createGunzip } from "node:zlib";
import { TriremeError } from "@trireme/core";
import type { Document } from "../document.ts";
import { FormatError } from "../format-error.ts";
import { readJsonLines, textField } from "../json-lines.ts";

/**
 * The documents of `path` (`.jsonl`, or `.gz` of one), one per line: the text under `field`, named by
 * the path and the line. Streams: the file is never in memory whole.
 */
export async function* readJsonLinesDocuments(
  path: string,
  field = "text",
): AsyncGenerator<Document> {
  if (path.endsWith(".zst")) {
    throw new TriremeError(
      "DATA",
      `${path}: zstd is not read here; decompress it, or compress with gzip`,
    );
  }
  const file = createReadStream(path);
  const zipped = path.endsWith(".gz");
  const stream: AsyncIterable<Uint8Array> = zipped ? file.pipe(createGunzip()) : file;
  // An error of the file does not pass through the pipe by itself.
  const broken = new Promise<never>((_, reject) => file.once("error", reject));
  broken.catch(() => undefined);
  try {
    const lines = readJsonLines(path, stream);
    for (;;) {
      const next = await Promise.race([lines.next(), broken]);
      if (next.done === true) return;
      yield { name: `${path}:${next.value.line}`, text: textField(path, next.value, field) };
    }
  } catch (cause) {
    const code = cause instanceof Error && "code" in cause ? String(cause.code) : "";
    if (code === "ENOENT") throw new TriremeError("DATA", `${path}: no such file`, { cause });
    if (code === "EISDIR")
      throw new TriremeError("DATA", `${path}: is a directory; give a file`, { cause });
    if (code.startsWith("Z_"))
      throw new FormatError(path, undefined, "not gzip, or cut short", { cause });
    throw cause;
  } finally {
    file.destroy();
  }
}

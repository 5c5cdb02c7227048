/** Documents in a file of JSON Lines, plain or compressed. */
import type { Document } from "../document.ts";
import { readJsonLines, textField } from "../json-lines.ts";
import { readPieces } from "./file-pieces.ts";

/**
 * The documents of `path` (`.jsonl`, or `.gz` or `.zst` of one), one per line: the text under `field`,
 * named by the path and the line. Streams: the file is never in memory whole. `onRead` is told how many
 * more bytes of the file were taken.
 */
export async function* readJsonLinesDocuments(
  path: string,
  field = "text",
  onRead?: (bytes: number) => void,
): AsyncGenerator<Document> {
  for await (const line of readJsonLines(path, readPieces(path, onRead))) {
    yield { name: `${path}:${line.line}`, text: textField(path, line, field) };
  }
}

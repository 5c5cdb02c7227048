import type { Document } from "../document.ts";
import { FormatError } from "../format-error.ts";
import type { ParquetFile } from "./parquet-file.ts";

/**
 * The texts of a column, one document a row, named by the file and the row (from 0). A row without a
 * text is refused with its number. One row group is held at a time.
 */
export async function* parquetDocuments(
  file: ParquetFile,
  column = "text",
): AsyncGenerator<Document> {
  for (let group = 0; group + 1 < file.groups.length; group++) {
    const first = file.groups[group]!;
    for (const [i, text] of (await file.read(column, group)).entries()) {
      if (typeof text !== "string") {
        const what = text === null ? "null" : text instanceof Uint8Array ? "bytes" : typeof text;
        throw new FormatError(
          file.name,
          undefined,
          `row ${first + i}: ${JSON.stringify(column)} is ${what}; a text is needed`,
        );
      }
      yield { name: `${file.name}:${first + i}`, text };
    }
  }
}

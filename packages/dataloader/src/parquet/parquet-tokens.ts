import { FormatError } from "../format-error.ts";
import type { ParquetFile } from "./parquet-file.ts";

/** The tokens of a row. */
export interface ParquetTokens {
  /** From 0. */
  readonly row: number;
  readonly tokens: Int32Array<ArrayBuffer>;
}

/**
 * The token ids of a column of integer lists (`input_ids`, as tokenised data sets have it), row by row.
 * What is no id, an integer in 0..2³¹ − 1, is refused with its row and place.
 */
export async function* parquetTokens(
  file: ParquetFile,
  column = "input_ids",
): AsyncGenerator<ParquetTokens> {
  for (let group = 0; group + 1 < file.groups.length; group++) {
    const first = file.groups[group]!;
    for (const [i, value] of (await file.read(column, group)).entries()) {
      yield { row: first + i, tokens: idsOf(file.name, column, first + i, value) };
    }
  }
}

function idsOf(file: string, column: string, row: number, value: unknown): Int32Array<ArrayBuffer> {
  const fail = (reason: string): never => {
    throw new FormatError(file, undefined, `row ${row}: ${JSON.stringify(column)} ${reason}`);
  };
  if (!isList(value)) return fail("is no list of integers");
  const tokens = new Int32Array(value.length);
  for (let i = 0; i < value.length; i++) {
    const id = Number(value[i] ?? -1);
    tokens[i] = id;
    if (tokens[i] !== id || id < 0) fail(`has ${String(value[i])} at ${i}; ids are 0..2^31-1`);
  }
  return tokens;
}

function isList(value: unknown): value is ArrayLike<unknown> {
  return Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));
}

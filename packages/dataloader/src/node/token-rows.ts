/** Documents that are tokens already, such as the rows of a Parquet file, to Megatron's pair of files. */
import { open, rename, rm, writeFile } from "node:fs/promises";
import { type Bytes, TriremeError } from "@trireme/core";
import { encodeMegatronIndex } from "../megatron-index.ts";
import { checkIds } from "../token-dataset.ts";
import { encodeTokens, tokenTypeFor, tokenWidth } from "../token-type.ts";

/** What was written. */
export interface TokenRowsReport {
  readonly documents: number;
  readonly tokens: number;
  /** Bytes of the `.bin`. */
  readonly bytes: Bytes;
}

const flushBytes = 2 ** 24;

/**
 * Writes rows of token ids as `<prefix>.bin` and `<prefix>.idx`, a document each, so that they can be
 * read in any order. Streams: memory holds 16 MiB and 8 bytes a row. An id that is not in
 * [0, vocabulary) is refused with its row and place; nothing is left behind then.
 */
export async function writeTokenRows(
  prefix: string,
  rows: AsyncIterable<ArrayLike<number>> | Iterable<ArrayLike<number>>,
  vocabulary: number,
): Promise<TokenRowsReport> {
  if (!Number.isSafeInteger(vocabulary) || vocabulary < 1)
    throw new TriremeError("DATASET", `vocabulary ${vocabulary} is not a positive integer`);
  const type = tokenTypeFor(vocabulary);
  const path = `${prefix}.rows.partial`;
  const file = await open(path, "w").catch((cause: unknown) => {
    throw new TriremeError("DATASET", `${path}: cannot be written; does its directory exist?`, {
      cause,
    });
  });
  const lengths: number[] = [];
  let tokens = 0;
  try {
    let held: Uint8Array[] = [];
    let size = 0;
    for await (const row of rows) {
      checkIds(row, vocabulary, (at) => `${at} of row ${lengths.length}`);
      lengths.push(row.length);
      tokens += row.length;
      const bytes = encodeTokens(type, row);
      held.push(bytes);
      size += bytes.length;
      if (size < flushBytes) continue;
      await file.appendFile(Buffer.concat(held));
      [held, size] = [[], 0];
    }
    if (size > 0) await file.appendFile(Buffer.concat(held));
    await file.sync();
  } catch (error) {
    await file.close();
    await rm(path);
    throw error;
  }
  await file.close();
  const documents = Float64Array.from({ length: lengths.length + 1 }, (_, i) => i);
  const index = encodeMegatronIndex({ type, lengths: Int32Array.from(lengths), documents });
  await writeFile(`${prefix}.idx`, index, { flush: true });
  await rename(path, `${prefix}.bin`);
  return { documents: lengths.length, tokens, bytes: tokens * tokenWidth(type) };
}

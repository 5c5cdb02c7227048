import type { SchemaElement } from "hyparquet-writer";
import { TriremeError, missingPeer } from "@trireme/core";

/** How a file is written. */
export interface ParquetWriteOptions {
  /** Rows of a row group, and so of what a reader holds. Default 1,000. */
  readonly rowGroup?: number;
  /** Default "snappy". */
  readonly compression?: "none" | "snappy";
}

/**
 * The bytes of a Parquet file with a column of texts or of lists of 32-bit token ids for each entry of
 * `columns`; all have as many rows. Written by hyparquet-writer.
 */
export async function encodeParquet(
  columns: Readonly<Record<string, readonly string[] | readonly ArrayLike<number>[]>>,
  options: ParquetWriteOptions = {},
): Promise<Uint8Array<ArrayBuffer>> {
  const { parquetWriteBuffer } = await import("hyparquet-writer").catch(
    missingPeer("@trireme/dataloader/parquet", "hyparquet-writer", "0.17.0"),
  );
  const { rowGroup = 1000, compression = "snappy" } = options;
  const entries = Object.entries(columns);
  const rows = entries[0]?.[1].length ?? 0;
  const uneven = entries.find(([, values]) => values.length !== rows);
  if (entries.length === 0)
    throw new TriremeError("FORMAT", "a Parquet file needs a column at least");
  if (uneven !== undefined) {
    throw new TriremeError(
      "FORMAT",
      `column ${uneven[0]} has ${uneven[1].length} rows, column ${entries[0]![0]} has ${rows}`,
    );
  }
  const schema: SchemaElement[] = [
    { name: "root", num_children: entries.length },
    ...entries.flatMap(([name, values]) => (isTexts(values) ? textSchema(name) : listSchema(name))),
  ];
  const buffer = parquetWriteBuffer({
    columnData: entries.map(([name, values]) => ({
      name,
      data: isTexts(values) ? [...values] : values.map((ids) => Array.from(ids)),
    })),
    schema,
    rowGroupSize: rowGroup,
    codec: compression === "none" ? "UNCOMPRESSED" : "SNAPPY",
  });
  return new Uint8Array(buffer);
}

type Values = readonly string[] | readonly ArrayLike<number>[];

function isTexts(values: Values): values is readonly string[] {
  return values.length === 0 || typeof values[0] === "string";
}

function textSchema(name: string): readonly SchemaElement[] {
  return [{ name, type: "BYTE_ARRAY", repetition_type: "REQUIRED", converted_type: "UTF8" }];
}

/** The three levels of a list, as the format's LogicalTypes.md has them. */
function listSchema(name: string): readonly SchemaElement[] {
  return [
    { name, repetition_type: "REQUIRED", num_children: 1, converted_type: "LIST" },
    { name: "list", repetition_type: "REPEATED", num_children: 1 },
    { name: "element", repetition_type: "REQUIRED", type: "INT32" },
  ];
}

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
  if (!Number.isInteger(rowGroup) || rowGroup < 1)
    throw new TriremeError("FORMAT", `row groups of ${rowGroup} rows; use a positive integer`);
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
  for (const [name, values] of entries) checkValues(name, values);
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

/** Refuses a column that is neither texts alone nor lists of ids alone, with its first odd row. */
function checkValues(name: string, values: Values): void {
  const texts = isTexts(values);
  const rows: readonly unknown[] = values;
  rows.forEach((value, row) => {
    const odd = texts
      ? typeof value === "string"
        ? undefined
        : typeof value
      : isList(value)
        ? firstNoId(value)
        : typeof value;
    if (odd === undefined) return;
    throw new TriremeError(
      "FORMAT",
      `row ${row} of column ${name} has ${odd}; the column holds ${texts ? "texts" : "lists of ids in 0..2^31-1"}`,
    );
  });
}

function isList(value: unknown): value is ArrayLike<unknown> {
  return typeof value === "object" && value !== null && "length" in value;
}

function firstNoId(ids: ArrayLike<unknown>): string | undefined {
  for (let i = 0; i < ids.length; i++) {
    const id = ids[i];
    if (!(typeof id === "number" && Number.isInteger(id) && id >= 0 && id <= 0x7fffffff))
      return `${String(id)} at ${i}`;
  }
  return undefined;
}

/**
 * Parquet files, read by hyparquet: its footer, then one column of one row group at a time, so that
 * memory holds a row group of a column, not the file. Offsets and counts are 64-bit, exact to 2⁵³.
 */
import type { AsyncBuffer, FileMetaData } from "hyparquet";
import { TriremeError, nearestName, missingPeer } from "@trireme/core";
import { type ByteReader, readBytes } from "../byte-reader.ts";
import { FormatError } from "../format-error.ts";

const { parquetMetadataAsync, parquetReadObjects } = await import("hyparquet").catch(
  missingPeer("@trireme/dataloader/parquet", "hyparquet", "1.33.0"),
);
const { compressors } = await import("hyparquet-compressors").catch(
  missingPeer("@trireme/dataloader/parquet", "hyparquet-compressors", "1.1.2"),
);

/** A top-level column. */
export interface ParquetColumn {
  readonly name: string;
  /** "BYTE_ARRAY", "INT32" and so on; "GROUP" for lists and structures. */
  readonly type: string;
}

/** An opened file. */
export interface ParquetFile {
  readonly name: string;
  /** Rows over all row groups. */
  readonly rows: number;
  readonly columns: readonly ParquetColumn[];
  /** Where row group `g` starts, as a row number; one entry more for the end. */
  readonly groups: Float64Array;
  /** The values of a column in row group `group`; null where a row has none. */
  read(column: string, group: number): Promise<readonly unknown[]>;
}

/** Opens a file after checking both magic numbers, the footer, and every chunk against the size. */
export async function openParquet(reader: ByteReader): Promise<ParquetFile> {
  const { name, size } = reader;
  if (size < 12)
    throw new FormatError(name, undefined, `${size} bytes; a Parquet file has 12 at least`);
  checkMagic(reader, 0);
  checkMagic(reader, size - 4);
  const footer = new DataView(readBytes(reader, size - 8, 4).buffer).getUint32(0, true);
  if (footer > size - 12) {
    throw new FormatError(name, size - 8, `a footer of ${footer} bytes in a file of ${size}`);
  }
  const file: AsyncBuffer = {
    byteLength: size,
    slice: (start, end = size) => readBytes(reader, start, end - start).buffer,
  };
  const metadata = await parquetMetadataAsync(file).catch((cause: unknown) => {
    throw new FormatError(
      name,
      size - 8 - footer,
      `a footer that cannot be read: ${reasonOf(cause)}`,
      {
        cause,
      },
    );
  });
  const groups = checkGroups(name, size - 8 - footer, metadata);
  const columns = topLevel(metadata);
  return {
    name,
    rows: groups.at(-1)!,
    columns,
    groups,
    async read(column, group) {
      if (!columns.some((candidate) => candidate.name === column)) {
        throw unknownColumn(name, column, columns);
      }
      if (!Number.isInteger(group) || group < 0 || group >= groups.length - 1) {
        throw new TriremeError(
          "RANGE",
          `${name}: row group ${group} is outside 0..${groups.length - 2}`,
        );
      }
      const [rowStart, rowEnd] = [groups[group]!, groups[group + 1]!];
      const rows = await parquetReadObjects({
        file,
        metadata,
        columns: [column],
        rowStart,
        rowEnd,
        compressors,
      }).catch((cause: unknown) => {
        throw new FormatError(
          name,
          chunkStart(metadata, group, column),
          `column ${column} of row group ${group} cannot be read: ${reasonOf(cause)}`,
          { cause },
        );
      });
      if (rows.length !== rowEnd - rowStart) {
        throw new FormatError(
          name,
          chunkStart(metadata, group, column),
          `row group ${group} has ${rows.length} values of ${column}; the footer says ${rowEnd - rowStart}`,
        );
      }
      return rows.map((row): unknown => row[column] ?? null);
    },
  };
}

function checkMagic(reader: ByteReader, offset: number): void {
  const magic = String.fromCharCode(...readBytes(reader, offset, 4));
  if (magic === "PAR1") return;
  const reason =
    magic === "PARE"
      ? "an encrypted footer, which is not read here"
      : `${JSON.stringify(magic)}; a Parquet file starts and ends with "PAR1": it is another format or cut short`;
  throw new FormatError(reader.name, offset, reason);
}

/** First rows of the row groups, after checking rows and places of the chunks. */
function checkGroups(name: string, footerAt: number, metadata: FileMetaData): Float64Array {
  const starts = new Float64Array(metadata.row_groups.length + 1);
  metadata.row_groups.forEach((group, g) => {
    const rows = Number(group.num_rows);
    if (!Number.isSafeInteger(rows) || rows < 0) {
      throw new FormatError(name, footerAt, `row group ${g} has ${group.num_rows} rows`);
    }
    starts[g + 1] = starts[g]! + rows;
    for (const { file_path: path, meta_data: chunk } of group.columns) {
      if (path !== undefined && path !== "") {
        throw new FormatError(
          name,
          footerAt,
          `row group ${g} lies in another file, ${path}; give that one`,
        );
      }
      if (chunk === undefined)
        throw new FormatError(name, footerAt, `row group ${g} has a column without metadata`);
      const column = chunk.path_in_schema.join(".");
      const start = Number(chunk.dictionary_page_offset || chunk.data_page_offset);
      const bytes = Number(chunk.total_compressed_size);
      if (!(start >= 4 && bytes >= 0 && start + bytes <= footerAt)) {
        throw new FormatError(
          name,
          footerAt,
          `column ${column} of row group ${g} is bytes ${start} to ${start + bytes}; the data is 4 to ${footerAt}`,
        );
      }
    }
  });
  if (BigInt(starts.at(-1)!) !== metadata.num_rows) {
    throw new FormatError(
      name,
      footerAt,
      `its row groups have ${starts.at(-1)} rows; the footer says ${metadata.num_rows}`,
    );
  }
  return starts;
}

function topLevel(metadata: FileMetaData): readonly ParquetColumn[] {
  const columns: ParquetColumn[] = [];
  let at = 1;
  const skip = (): void => {
    const { num_children: children = 0 } = metadata.schema[at++] ?? {};
    for (let i = 0; i < children; i++) skip();
  };
  while (at < metadata.schema.length) {
    const { name, type = "GROUP" } = metadata.schema[at]!;
    columns.push({ name, type });
    skip();
  }
  return columns;
}

function chunkStart(metadata: FileMetaData, group: number, column: string): number | undefined {
  const found = metadata.row_groups[group]?.columns.find(
    ({ meta_data: chunk }) => chunk?.path_in_schema[0] === column,
  )?.meta_data;
  return found === undefined
    ? undefined
    : Number(found.dictionary_page_offset || found.data_page_offset);
}

function unknownColumn(
  name: string,
  column: string,
  columns: readonly ParquetColumn[],
): TriremeError {
  const names = columns.map((candidate) => candidate.name);
  const near = nearestName(column, names);
  return new TriremeError(
    "DATA",
    `${name} has no column ${JSON.stringify(column)}; ${near === undefined ? `it has ${names.join(", ")}` : `did you mean ${JSON.stringify(near)}?`}`,
  );
}

function reasonOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}

/** Tables of measurements: comma-separated numbers under a header that says what they are. */

/** A parsed table: cells by column, in the order of the lines. */
export interface Table {
  readonly columns: readonly string[];
  readonly rows: readonly Readonly<Record<string, string>>[];
}

/** Parses a table without quoting; throws an Error with file and line for a line of another length. */
export function parseTable(text: string, file: string): Table {
  const lines = text.split(/\r?\n/).filter((line) => line.trim() !== "");
  const columns = (lines[0] ?? "").split(",").map((c) => c.trim());
  const rows = lines.slice(1).map((line, i) => {
    const cells = line.split(",");
    if (cells.length !== columns.length) {
      throw new Error(`${file}:${i + 2}: ${cells.length} cells under ${columns.length} columns`);
    }
    return Object.fromEntries(columns.map((c, j) => [c, cells[j]!.trim()]));
  });
  return { columns, rows };
}

/** The positive number in a cell; undefined when there is none. */
export function numberIn(
  row: Readonly<Record<string, string>>,
  column: string,
): number | undefined {
  const value = Number(row[column]);
  return row[column] === "" || !Number.isFinite(value) || value <= 0 ? undefined : value;
}

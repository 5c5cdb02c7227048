/** One line of a corpus, as far as it is used; everything may be missing or of another type. */

/** A JSON object of unknown content. */
export type Fields = Readonly<Record<string, unknown>>;

/** A measurement. */
export interface CorpusRow {
  readonly id: string;
  readonly kind: string;
  readonly source: string;
  readonly confidence: string;
  readonly complete: boolean;
  /** Names of what is missing. */
  readonly missing: readonly string[];
  readonly dataset: string;
  readonly notes: string;
  readonly model: Fields;
  readonly hardware: Fields;
  readonly parallel: Fields;
  readonly measured: Fields;
  readonly derived: Fields;
}

/** Parses a corpus; throws an Error with file and line for what is not a JSON object with id and kind. */
export function parseCorpus(content: string, file: string): CorpusRow[] {
  const rows: CorpusRow[] = [];
  for (const [i, line] of content.split(/\r?\n/).entries()) {
    if (line.trim() === "") continue;
    let value: unknown;
    try {
      value = JSON.parse(line);
    } catch (cause) {
      throw new Error(`${file}:${i + 1}: not JSON`, { cause });
    }
    const f = fields(value);
    if (typeof f["id"] !== "string" || typeof f["kind"] !== "string") {
      throw new Error(`${file}:${i + 1}: a measurement needs an id and a kind`);
    }
    const complete = fields(f["complete"]);
    rows.push({
      id: f["id"],
      kind: f["kind"],
      source: textOf(f["source_name"]),
      confidence: textOf(f["confidence"]),
      complete: complete["all"] === true,
      missing: Array.isArray(complete["missing"]) ? complete["missing"].map(String) : [],
      dataset: textOf(f["dataset"]),
      notes: textOf(f["notes"]),
      model: fields(f["model"]),
      hardware: fields(f["hardware"]),
      parallel: fields(f["parallel"]),
      measured: fields(f["measured"]),
      derived: fields(f["derived"]),
    });
  }
  return rows;
}

function fields(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value))
    : {};
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** A positive number under a key; undefined when it is missing or something else. */
export function number(f: Fields, key: string): number | undefined {
  const value = f[key];
  return typeof value === "number" && Number.isFinite(value) && value > 0 ? value : undefined;
}

/** A text under a key, in lower case; empty when it is missing. */
export function text(f: Fields, key: string): string {
  const value = f[key];
  return typeof value === "string" || typeof value === "boolean" || typeof value === "number"
    ? String(value).toLowerCase()
    : "";
}

/** An object under a key; undefined when it is missing. */
export function object(f: Fields, key: string): Fields | undefined {
  const value = f[key];
  return typeof value === "object" && value !== null ? fields(value) : undefined;
}

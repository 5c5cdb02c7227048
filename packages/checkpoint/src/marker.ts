/** The marker of a complete checkpoint: which files it has, how long they are, and their checksums. */

/** A file as the marker lists it. */
export interface MarkedFile {
  readonly name: string;
  readonly size: number;
  /** CRC-32 of its bytes; left out where none was taken. */
  readonly crc32?: number;
}

/** What a marker says. */
export interface Marker {
  readonly step: number;
  readonly files: readonly MarkedFile[];
}

/** The text of a marker, as UTF-8. */
export function encodeMarker(step: number, files: readonly MarkedFile[]): Uint8Array {
  const listed = files.map(({ name, size, crc32 }) => ({ name, size, crc32 }));
  return new TextEncoder().encode(`${JSON.stringify({ version: 1, step, files: listed })}\n`);
}

/** Reads a marker; undefined where the text is none (cut short, or of another version). */
export function parseMarker(text: string): Marker | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const { version, step, files } = value as Partial<Record<string, unknown>>;
  if (version !== 1 || typeof step !== "number" || !Array.isArray(files)) return undefined;
  return files.every(isMarkedFile) ? { step, files } : undefined;
}

function isMarkedFile(value: unknown): value is MarkedFile {
  if (typeof value !== "object" || value === null) return false;
  const { name, size, crc32 } = value as Partial<Record<string, unknown>>;
  return (
    typeof name === "string" &&
    typeof size === "number" &&
    (crc32 === undefined || typeof crc32 === "number")
  );
}

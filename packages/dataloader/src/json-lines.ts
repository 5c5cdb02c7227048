/** JSON Lines: one JSON value a line, read from bytes that may come in pieces of any size. */
import { TriremeError } from "@trireme/core";
import { FormatError } from "./format-error.ts";
import { firstInvalidUtf8 } from "./utf8.ts";

/** A value and where it stood. */
export interface JsonLine {
  /** From 1. */
  readonly line: number;
  readonly value: unknown;
}

/**
 * The values of a file, line by line; a line of white space is passed over. What is no JSON, or no
 * UTF-8, is refused with its line and offset. Only one line at a time is held.
 */
export async function* readJsonLines(
  name: string,
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<JsonLine> {
  let held: Uint8Array[] = [];
  let line = 0;
  let offset = 0;
  for await (const piece of pieces) {
    let start = 0;
    for (let end = piece.indexOf(0x0a); end !== -1; end = piece.indexOf(0x0a, start)) {
      const bytes = joined([...held, piece.subarray(start, end)]);
      held = [];
      start = end + 1;
      const value = parseLine(name, bytes, ++line, offset);
      offset += bytes.length + 1;
      if (value !== undefined) yield { line, value };
    }
    if (start < piece.length) held.push(piece.slice(start));
  }
  if (held.length > 0) {
    const value = parseLine(name, joined(held), ++line, offset);
    if (value !== undefined) yield { line, value };
  }
}

/** A text field of a line's object, such as "text"; refuses a line without it. */
export function textField(name: string, { line, value }: JsonLine, field: string): string {
  const found = typeof value === "object" && value !== null ? Object.entries(value) : [];
  const text: unknown = found.find(([key]) => key === field)?.[1];
  if (typeof text === "string") return text;
  throw new FormatError(name, undefined, `line ${line} has no text under ${JSON.stringify(field)}`);
}

/**
 * The bytes of values as JSON Lines.
 * @throws TriremeError "FORMAT" on a value that JSON does not have, such as undefined or a bigint.
 */
export function encodeJsonLines(values: Iterable<unknown>): Uint8Array<ArrayBuffer> {
  const encoder = new TextEncoder();
  const lines: Uint8Array[] = [];
  for (const value of values) lines.push(encoder.encode(`${jsonOf(value, lines.length)}\n`));
  return joined(lines);
}

function jsonOf(value: unknown, at: number): string {
  let reason = `${typeof value} is no value of JSON`;
  try {
    // Its type does not say so, but what JSON does not have gives undefined.
    const text: string | undefined = JSON.stringify(value);
    if (text !== undefined) return text;
  } catch (cause) {
    reason = cause instanceof Error ? cause.message : String(cause);
  }
  throw new TriremeError("FORMAT", `value ${at} of JSON Lines: ${reason}`);
}

function parseLine(name: string, bytes: Uint8Array, line: number, offset: number): unknown {
  const invalid = firstInvalidUtf8(bytes);
  if (invalid !== -1)
    throw new FormatError(name, offset + invalid, `line ${line} is not UTF-8 from here on`);
  const text = new TextDecoder().decode(bytes).trim();
  if (text === "") return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch (cause) {
    const shown = text.length > 40 ? `${text.slice(0, 40)}…` : text;
    throw new FormatError(name, offset, `line ${line} is no JSON: ${shown}`, { cause });
  }
}

function joined(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

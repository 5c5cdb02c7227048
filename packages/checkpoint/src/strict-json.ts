/**
 * JSON (RFC 8259) read more strictly than `JSON.parse`: a key that comes twice is refused instead of
 * overwriting the first, and integers keep their digits, so that one above 2⁵³ is seen and not rounded.
 */

/** A number as it was written. */
export class JsonNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  /** Its value where it is a non-negative integer without exponent or leading zero; else undefined. */
  get count(): bigint | undefined {
    return /^\d+$/.test(this.text) ? BigInt(this.text) : undefined;
  }
}

/** A parsed value; an object is a Map, so that "__proto__" is a key like any other. */
export type Json =
  | string
  | boolean
  | null
  | JsonNumber
  | readonly Json[]
  | ReadonlyMap<string, Json>;

/** Thrown with the offset (in UTF-16 code units) of what is wrong. */
export class JsonSyntaxError extends Error {
  readonly offset: number;

  constructor(reason: string, offset: number) {
    super(`${reason} at ${offset}`);
    this.name = "JsonSyntaxError";
    this.offset = offset;
  }
}

const space = /[ \t\n\r]*/y;
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const literal = /true|false|null/y;
/** Deeper than any header goes; bounds the recursion on hostile input. */
const deepest = 64;

/**
 * Where the string that starts at an offset ends; undefined where none does. By hand, for a regular
 * expression of a long one overflows the stack. No raw control characters; escapes are left to
 * JSON.parse.
 */
function endOfString(text: string, start: number): number | undefined {
  if (text[start] !== '"') return undefined;
  for (let at = start + 1; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === 0x22) return at + 1;
    if (unit < 0x20) return undefined;
    if (unit === 0x5c) at++;
  }
  return undefined;
}

/** Parses one value with nothing but white space around it. */
export function parseStrictJson(text: string): Json {
  let at = 0;
  const fail = (reason: string): never => {
    throw new JsonSyntaxError(reason, at);
  };
  const match = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0];
    if (found !== undefined) at += found.length;
    return found;
  };
  const skip = (): string => {
    match(space);
    return text[at] ?? "";
  };
  const readString = (): string => {
    const start = at;
    const end = endOfString(text, at) ?? fail("expected a string");
    try {
      at = end;
      return String(JSON.parse(text.slice(start, end)));
    } catch {
      at = start;
      return fail("bad escape in the string");
    }
  };
  const readObject = (depth: number): Json => {
    const object = new Map<string, Json>();
    at++;
    if (skip() === "}") {
      at++;
      return object;
    }
    for (;;) {
      skip();
      const start = at;
      const key = readString();
      if (object.has(key)) {
        at = start;
        fail(`the key ${JSON.stringify(key)} comes twice`);
      }
      if (skip() !== ":") fail('expected ":"');
      at++;
      object.set(key, readValue(depth));
      const next = skip();
      if (next !== "," && next !== "}") fail('expected "," or "}"');
      at++;
      if (next === "}") return object;
    }
  };
  const readArray = (depth: number): Json => {
    const array: Json[] = [];
    at++;
    if (skip() === "]") {
      at++;
      return array;
    }
    for (;;) {
      array.push(readValue(depth));
      const next = skip();
      if (next !== "," && next !== "]") fail('expected "," or "]"');
      at++;
      if (next === "]") return array;
    }
  };
  const readValue = (depth: number): Json => {
    if (depth > deepest) fail(`nested deeper than ${deepest}`);
    const next = skip();
    if (next === "{") return readObject(depth + 1);
    if (next === "[") return readArray(depth + 1);
    if (next === '"') return readString();
    const word = match(literal);
    if (word !== undefined) return word === "null" ? null : word === "true";
    return new JsonNumber(match(number) ?? fail("expected a value"));
  };
  const value = readValue(0);
  skip();
  if (at !== text.length) fail("expected the end");
  return value;
}

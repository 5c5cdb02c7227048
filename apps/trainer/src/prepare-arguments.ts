/** Reads the arguments of `trireme prepare`. */
import { parseArgs } from "node:util";
import { nearestName } from "@trireme/core";
import { InputError } from "./input-error.ts";

/** What is to be prepared, and how. */
export interface PrepareArguments {
  readonly paths: readonly string[];
  /** Writes `<out>.bin` and `<out>.idx`. */
  readonly out: string;
  /** "byte", "character", a name of tiktoken's, or the path of a tokenizer.json. */
  readonly tokenizer: string;
  readonly field: string;
  /** Token behind each document; undefined for none. */
  readonly end: number | undefined;
  /** Threads; undefined for as many as the machine runs at once. */
  readonly workers: number | undefined;
  readonly json: boolean;
}

const known = [
  "--out",
  "--tokenizer",
  "--field",
  "--end",
  "--workers",
  "--json",
  "--help",
] as const;

/**
 * Parses what follows `prepare`.
 * @returns "help" where help is asked for.
 * @throws InputError for anything unknown, missing or out of range.
 */
export function parsePrepare(args: readonly string[]): PrepareArguments | "help" {
  const { tokens } = parseArgs({
    args: [...args],
    options: {
      out: { type: "string" },
      tokenizer: { type: "string" },
      field: { type: "string" },
      end: { type: "string" },
      workers: { type: "string" },
      json: { type: "boolean" },
      help: { type: "boolean", short: "h" },
    },
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const paths: string[] = [];
  const given = new Map<string, string>();
  let json = false;
  for (const token of tokens) {
    if (token.kind === "positional") paths.push(token.value);
    if (token.kind !== "option") continue;
    const name = `--${token.name}`;
    if (name === "--help") return "help";
    if (!known.some((option) => option === name)) throw unknownOption(token.rawName);
    if (name === "--json") json = true;
    else if (token.value === undefined || token.value === "")
      throw refusal(`${name} needs a value`);
    else given.set(name, token.value);
  }
  const out = given.get("--out");
  if (paths.length === 0) {
    throw refusal("which texts? give files or directories of .txt, .jsonl or .parquet");
  }
  if (out === undefined)
    throw refusal("where to? give --out data/train for train.bin and train.idx");
  return {
    paths,
    out,
    tokenizer: given.get("--tokenizer") ?? "byte",
    field: given.get("--field") ?? "text",
    end: whole("--end", given.get("--end")),
    workers: whole("--workers", given.get("--workers")),
    json,
  };
}

function whole(name: string, value: string | undefined): number | undefined {
  if (value === undefined) return undefined;
  if (/^\d{1,15}$/.test(value)) return Number(value);
  throw refusal(`${name} ${value} must be a whole number, 0 or more`);
}

function unknownOption(name: string): InputError {
  const near = nearestName(name, known);
  return refusal(
    `unknown option ${name}; ${near === undefined ? `known: ${known.join(", ")}` : `did you mean ${near}?`}`,
  );
}

function refusal(what: string): InputError {
  return new InputError([`trireme prepare: ${what}`]);
}

/** The arguments of `trireme prepare`. */
import { readOptions, refusal } from "./read-options.ts";

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

/** More threads than any machine has would only eat its memory. */
const mostWorkers = 1024;

const valued = {
  out: "data/train",
  tokenizer: "gpt2",
  field: "text",
  end: "50256",
  workers: "4",
} as const;

/**
 * Parses what follows `prepare`.
 * @returns "help" where help is asked for.
 * @throws InputError for anything unknown, missing or out of range.
 */
export function parsePrepare(args: readonly string[]): PrepareArguments | "help" {
  const given = readOptions(args, { command: "prepare", valued });
  if (given === "help") return "help";
  const { positionals: paths, values, json } = given;
  const value = (name: keyof typeof valued): string | undefined => values.get(name)?.[0];
  const out = value("out");
  if (paths.length === 0) {
    throw refusal("prepare", "which texts? give files or directories of .txt, .jsonl or .parquet");
  }
  if (out === undefined)
    throw refusal("prepare", "where to? give --out data/train for train.bin and train.idx");
  return {
    paths,
    out,
    tokenizer: value("tokenizer") ?? "byte",
    field: value("field") ?? "text",
    end: whole("--end", value("end"), Number.MAX_SAFE_INTEGER),
    workers: whole("--workers", value("workers"), mostWorkers),
    json,
  };
}

function whole(name: string, value: string | undefined, most: number): number | undefined {
  if (value === undefined) return undefined;
  const rule =
    most === mostWorkers ? `a whole number from 0 to ${most}` : "a whole number, 0 or more";
  if (/^\d{1,15}$/.test(value) && Number(value) <= most) return Number(value);
  throw refusal("prepare", `${name} ${value} must be ${rule}`);
}

/** Reads the words behind a command: what is unknown is refused in one line, with the nearest known. */
import { parseArgs } from "node:util";
import { nearestName } from "@trireme/core";
import { InputError } from "./input-error.ts";

/** The options of a command; `--json` and `--help` are every one's. */
export interface OptionSpec {
  readonly command: string;
  /** Options with a value, each with an example. */
  readonly valued: Readonly<Record<string, string>>;
  /** Those of them that may come several times. */
  readonly repeated?: readonly string[];
  /** Options of other commands, and what to say of each. */
  readonly elsewhere?: Readonly<Record<string, string>>;
}

/** What was given. */
export interface GivenOptions {
  readonly positionals: readonly string[];
  /** By name without dashes, in order. */
  readonly values: ReadonlyMap<string, readonly string[]>;
  readonly json: boolean;
}

/**
 * Reads words as positionals, flags and options with values.
 * @returns "help" where help is asked for.
 * @throws InputError for anything unknown, without its value, or given twice.
 */
export function readOptions(args: readonly string[], spec: OptionSpec): GivenOptions | "help" {
  const { command, valued, repeated = [] } = spec;
  const names = Object.keys(valued);
  const { tokens } = parseArgs({
    args: [...args],
    options: {
      ...Object.fromEntries(names.map((name) => [name, { type: "string" } as const])),
      json: { type: "boolean" },
      help: { type: "boolean", short: "h" },
    },
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const positionals: string[] = [];
  const values = new Map<string, string[]>();
  let json = false;
  for (const token of tokens) {
    if (token.kind === "positional") positionals.push(token.value);
    if (token.kind !== "option") continue;
    const { name, value } = token;
    if (name === "help" && value === undefined) return "help";
    if (!names.includes(name)) {
      if (name !== "json" && name !== "help") throw unknown(spec, token.rawName);
      if (value !== undefined) throw refusal(command, `--${name} takes no value`);
      json = true;
      continue;
    }
    const example = `for example --${name} ${valued[name]}`;
    if (value === undefined || value === "") {
      throw refusal(command, `--${name} needs a value, ${example}`);
    }
    // A forgotten value must not take the next option for it.
    if (!token.inlineValue && /^--?[A-Za-z]/.test(value)) {
      throw refusal(command, `--${name} needs a value, but ${value} follows; ${example}`);
    }
    const before = values.get(name);
    if (before === undefined) values.set(name, [value]);
    else if (repeated.includes(name)) before.push(value);
    else throw refusal(command, `--${name} is given twice, as ${before[0]} and as ${value}`);
  }
  return { positionals, values, json };
}

function unknown({ command, valued, elsewhere = {} }: OptionSpec, name: string): InputError {
  const other = Object.hasOwn(elsewhere, name) ? elsewhere[name] : undefined;
  if (other !== undefined) return refusal(command, `${name}: ${other}`);
  const known = [...Object.keys(valued).map((each) => `--${each}`), "--json", "--help"];
  const near = nearestName(name, known);
  const hint = near === undefined ? `known: ${known.join(", ")}` : `did you mean ${near}?`;
  return refusal(command, `unknown option ${name}; ${hint}`);
}

/** What is wrong with the words of a command, as bad input. */
export function refusal(command: string, what: string): InputError {
  return new InputError([`trireme ${command}: ${what}`]);
}

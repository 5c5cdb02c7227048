/** The command line of `pnpm validate`. */
import { nearestName } from "@trireme/core";

/** What to score and where to write. */
export interface Arguments {
  /** Corpora in JSON lines; empty: the repository's own. */
  readonly corpora: readonly string[];
  /** Tables, recognised by their header; empty: the repository's own. */
  readonly tables: readonly string[];
  /** Folder of the report; undefined: docs/accuracy for the repository's own data, else none. */
  readonly out: string | undefined;
  /** Print the scores as JSON in place of the table. */
  readonly json: boolean;
  readonly help: boolean;
}

const flags = ["--corpus", "--csv", "--out", "--json", "--help"];

/** Usage, as `--help` prints it. */
export const usage: string = `Usage: pnpm validate [--corpus FILE]... [--csv FILE]... [--out DIR] [--json]

Scores the cost model against published measurements. With --corpus or --csv only the given
files are scored, and nothing is written unless --out says where. Without, the repository's
own data are scored and docs/accuracy is written.

  --corpus FILE   measurements as JSON lines, one a line (repeatable)
  --csv FILE      a table, recognised by its header (repeatable)
  --out DIR       write accuracy.json, README.md and scatter.svg there
  --json          print the scores as JSON`;

/** Parses the arguments after the program's name; throws an Error that says what is wrong in one line. */
export function parseArguments(argv: readonly string[]): Arguments {
  const corpora: string[] = [];
  const tables: string[] = [];
  let out: string | undefined;
  let json = false;
  let help = false;
  for (let i = 0; i < argv.length; i++) {
    const [flag, inline] = splitFlag(argv[i]!);
    const value = (): string => {
      const given = inline ?? argv[++i];
      if (given === undefined || given === "") throw new Error(`${flag} needs a value`);
      return given;
    };
    if (flag === "--corpus") corpora.push(value());
    else if (flag === "--csv") tables.push(value());
    else if (flag === "--out") out = value();
    else if (flag === "--json") json = true;
    else if (flag === "--help" || flag === "-h") help = true;
    else if (flag !== "--") throw new Error(unknown(flag));
  }
  return { corpora, tables, out, json, help };
}

function splitFlag(argument: string): [string, string | undefined] {
  const at = argument.startsWith("--") ? argument.indexOf("=") : -1;
  return at < 0 ? [argument, undefined] : [argument.slice(0, at), argument.slice(at + 1)];
}

function unknown(flag: string): string {
  const near = nearestName(flag, flags);
  return `unknown argument ${flag}; ${near === undefined ? `known: ${flags.join(", ")}` : `did you mean ${near}?`}`;
}

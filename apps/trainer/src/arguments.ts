/** Reads the arguments of a command: what is unknown is refused in one line, with the nearest known. */
import { parseArgs } from "node:util";
import { nearestName } from "@trireme/core";
import { InputError } from "./input-error.ts";

/** The commands. */
export const commandNames = ["train", "simulate", "estimate"] as const;
export type CommandName = (typeof commandNames)[number];

/** What a command is asked to do. */
export interface CommandArguments {
  /** The run file. */
  readonly file: string;
  /** Overrides in order. */
  readonly set: readonly string[];
  /** The folder to write to. */
  readonly out: string | undefined;
  readonly json: boolean;
}

const flags = ["--json", "--help"];
const valued: Readonly<Record<CommandName, readonly string[]>> = {
  train: ["--set", "--out"],
  simulate: ["--set", "--out"],
  estimate: ["--set"],
};

/** The options a command knows. */
function optionsOf(command: CommandName): readonly string[] {
  return [...valued[command], ...flags];
}

/**
 * Parses what follows the command's name.
 * @returns "help" where help is asked for.
 * @throws InputError for anything unknown, missing or too much.
 */
export function parseCommand(
  command: CommandName,
  args: readonly string[],
): CommandArguments | "help" {
  const { tokens } = parseArgs({
    args: [...args],
    options: {
      set: { type: "string", multiple: true },
      out: { type: "string" },
      json: { type: "boolean" },
      help: { type: "boolean", short: "h" },
    },
    strict: false,
    allowPositionals: true,
    tokens: true,
  });
  const files: string[] = [];
  const set: string[] = [];
  let out: string | undefined;
  let json = false;
  for (const token of tokens) {
    if (token.kind === "positional") files.push(token.value);
    if (token.kind !== "option") continue;
    const name = `--${token.name}`;
    if (name === "--help") return "help";
    if (!optionsOf(command).includes(name)) throw unknownOption(command, token.rawName);
    if (flags.includes(name)) {
      if (token.value !== undefined) throw refusal(command, `${name} takes no value`);
      json = true;
    } else if (token.value === undefined || token.value === "") {
      throw refusal(command, `${name} needs a value, for example ${exampleOf[name]}`);
    } else if (name === "--set") set.push(token.value);
    else out = token.value;
  }
  const [file, extra] = files;
  if (file === undefined)
    throw refusal(command, "which run? give a run file, for example examples/sotu-gpt.yaml");
  if (extra !== undefined)
    throw refusal(command, `one run file at a time, but there is also ${extra}`);
  return { file, set, out, json };
}

const exampleOf: Readonly<Record<string, string>> = {
  "--set": "--set plan.tp=8",
  "--out": "--out runs/mine",
};

function unknownOption(command: CommandName, name: string): InputError {
  const near = nearestName(name, optionsOf(command));
  const hint =
    near === undefined ? `known: ${optionsOf(command).join(", ")}` : `did you mean ${near}?`;
  return refusal(command, `unknown option ${name}; ${hint}`);
}

function refusal(command: CommandName, what: string): InputError {
  return new InputError([`trireme ${command}: ${what}`]);
}

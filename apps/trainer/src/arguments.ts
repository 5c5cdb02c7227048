/** The arguments of the commands that take a run file. */
import { type OptionSpec, readOptions, refusal } from "./read-options.ts";

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

/** The options a command knows. */
function specOf(command: CommandName): OptionSpec {
  const set = { set: "plan.tp=8" };
  const writes = command !== "estimate";
  return {
    command,
    valued: writes ? { ...set, out: "runs/mine" } : set,
    repeated: ["set"],
    ...(writes ? {} : { elsewhere: { "--out": "it writes nothing; train and simulate do" } }),
  };
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
  const given = readOptions(args, specOf(command));
  if (given === "help") return "help";
  const { positionals, values, json } = given;
  const [file, extra] = positionals;
  if (file === undefined)
    throw refusal(command, "which run? give a run file, for example examples/sotu-gpt.yaml");
  if (extra !== undefined) {
    const way = extra.includes("=") ? `; to change the run, --set ${extra}` : "";
    throw refusal(command, `one run file at a time, but there is also ${extra}${way}`);
  }
  return { file, set: values.get("set") ?? [], out: values.get("out")?.[0], json };
}

/** The command line as a function: arguments in, text to the terminal, exit code out. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { TriremeError, nearestName } from "@trireme/core";
import { commandNames, type CommandName, parseCommand } from "./arguments.ts";
import { estimateCommand } from "./commands/estimate.ts";
import { prepareCommand } from "./commands/prepare.ts";
import { simulateCommand } from "./commands/simulate.ts";
import { type Interruption, trainCommand } from "./commands/train.ts";
import type { Parts } from "./composition.ts";
import { commandHelp, help, prepareHelp } from "./help.ts";
import { InputError, RunFailure } from "./input-error.ts";
import { parsePrepare } from "./prepare-arguments.ts";
import type { Terminal } from "./terminal.ts";

/** 0 done, 1 failed or stopped, 2 bad input. */
export type ExitCode = 0 | 1 | 2;

/** Carries out a command line. */
export async function main(
  args: readonly string[],
  terminal: Terminal,
  parts: Parts,
  interruption: Interruption,
): Promise<ExitCode> {
  try {
    return await dispatch(args, terminal, parts, interruption);
  } catch (error) {
    return report(error, terminal);
  }
}

async function dispatch(
  args: readonly string[],
  terminal: Terminal,
  parts: Parts,
  interruption: Interruption,
): Promise<ExitCode> {
  const [first, ...rest] = args.length === 0 ? ["train", mainRun()] : args;
  if (first === "--help" || first === "-h" || first === "help") {
    terminal.out(helpOf(rest[0]));
    return 0;
  }
  if (first === "--version") {
    terminal.out(`${version()}\n`);
    return 0;
  }
  if (first === "prepare") {
    const wanted = parsePrepare(rest);
    if (wanted !== "help") {
      return (await prepareCommand(wanted, terminal, interruption, parts.now)) ? 0 : 1;
    }
    terminal.out(prepareHelp);
    return 0;
  }
  const command = commandNames.find((name) => name === first);
  if (command === undefined) throw unknownCommand(first ?? "");
  const parsed = parseCommand(command, rest);
  if (parsed === "help") {
    terminal.out(commandHelp[command]);
    return 0;
  }
  switch (command) {
    case "train":
      return (await trainCommand(parsed, terminal, parts, interruption)) ? 0 : 1;
    case "simulate":
      await simulateCommand(parsed, terminal, parts);
      return 0;
    case "estimate":
      break;
  }
  await estimateCommand(parsed, terminal, parts);
  return 0;
}

function report(error: unknown, terminal: Terminal): ExitCode {
  if (error instanceof InputError) {
    for (const line of error.lines) terminal.error(`${line}\n`);
    return 2;
  }
  if (error instanceof TriremeError) {
    terminal.error(`${error.message}\n`);
    return 2;
  }
  // What the system refuses (a full disk, a file that may not be read) is no mistake of this program.
  if (error instanceof RunFailure || isSystemError(error)) terminal.error(`${error.message}\n`);
  // A mistake of this program: the place of it is what its authors need.
  else
    terminal.error(`${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`);
  return 1;
}

function isSystemError(error: unknown): error is NodeJS.ErrnoException {
  return error instanceof Error && "code" in error && "syscall" in error;
}

/** The help of a command, or of all where none is named. */
function helpOf(name: string | undefined): string {
  if (name === undefined || name.startsWith("-")) return help;
  if (name === "prepare") return prepareHelp;
  const command = commandNames.find((each) => each === name);
  if (command === undefined) throw unknownCommand(name);
  return commandHelp[command];
}

/** The run of `npm start`. */
function mainRun(): string {
  return fileURLToPath(new URL("../../../examples/sotu-gpt.yaml", import.meta.url));
}

function version(): string {
  const manifest: unknown = JSON.parse(
    readFileSync(new URL("../package.json", import.meta.url), "utf8"),
  );
  const hasVersion = typeof manifest === "object" && manifest !== null && "version" in manifest;
  return hasVersion ? String(manifest.version) : "unknown";
}

function unknownCommand(name: string): InputError {
  const known: readonly (CommandName | "prepare")[] = [...commandNames, "prepare"];
  const flags = ["--help", "--version"];
  const near = nearestName(name, name.startsWith("-") ? flags : known);
  const hint = near === undefined ? `known: ${known.join(", ")}` : `did you mean ${near}?`;
  return new InputError([`trireme: unknown command ${name}; ${hint} (trireme --help)`]);
}

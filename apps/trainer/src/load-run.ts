/** From a run file and its overrides to a resolved run, or to lines that say what is wrong where. */
import { readFile } from "node:fs/promises";
import { dirname, resolve } from "node:path";
import { TriremeError } from "@trireme/core";
import {
  type Override,
  type Path,
  type Problem,
  type ResolvedRun,
  RunError,
  applyOverrides,
  checkRun,
  formatProblem,
  parseOverride,
} from "@trireme/run";
import { type RunFile, parseRunYaml } from "@trireme/run/yaml";
import type { CommandArguments } from "./arguments.ts";
import type { Parts } from "./composition.ts";
import { InputError } from "./input-error.ts";
import { localHost } from "./local-machine.ts";
import { type Texts, readTexts } from "./texts.ts";

/** A run ready to be carried out. */
export interface LoadedRun {
  readonly run: ResolvedRun;
  /** The run is on this machine. */
  readonly local: boolean;
  /** The text, where it was read. */
  readonly texts: Texts | undefined;
}

/**
 * Loads a run. The text is read where the command trains, and where only the text tells the
 * vocabulary of the model.
 * @throws InputError with one line a problem, in the order of the file.
 */
export async function loadRun(
  args: Pick<CommandArguments, "file" | "set">,
  parts: Parts,
  options: { readonly withTexts: boolean },
): Promise<LoadedRun> {
  const { file, overrides, description } = await readDescription(args);
  let local = false;
  const host = localHost(parts);
  const check = (vocabulary: number): ResolvedRun => {
    local = false;
    const checked = checkRun(description, {
      vocabulary,
      local(devices) {
        local = true;
        return host(devices);
      },
    });
    if (!checked.ok) throw problemLines(file, overrides, checked.problems);
    return checked.run;
  };
  // First with a vocabulary that any model holds, to find what is wrong before reading any text.
  const first = check(1);
  const { data } = first;
  const vocabularyIsDerived = first.derived.some((d) => d.path.join(".") === "model.vocab");
  if (data === undefined || (!options.withTexts && !vocabularyIsDerived)) {
    return { run: first, local, texts: undefined };
  }
  const texts = await readTexts(data, dirname(resolve(args.file))).catch((error: unknown) => {
    if (!(error instanceof TriremeError)) throw error;
    const problem = { path: ["data", "path"], value: data.path, rule: error.message };
    throw problemLines(file, overrides, [problem]);
  });
  return { run: check(texts.tokenizer.vocabulary), local, texts };
}

interface Description {
  readonly file: RunFile;
  readonly overrides: readonly Override[];
  readonly description: unknown;
}

async function readDescription(args: Pick<CommandArguments, "file" | "set">): Promise<Description> {
  let text: string;
  try {
    text = await readFile(args.file, "utf8");
  } catch (error) {
    throw new InputError([`${args.file}: ${reasonOf(error)}`], { cause: error });
  }
  try {
    const file = parseRunYaml(text, { file: args.file });
    const overrides = args.set.map(overrideOf);
    return { file, overrides, description: applyOverrides(file.description, overrides) };
  } catch (error) {
    if (!(error instanceof RunError)) throw error;
    throw new InputError(error.problems.map(formatProblem), { cause: error });
  }
}

function overrideOf(text: string): Override {
  try {
    return parseOverride(text);
  } catch (error) {
    if (!(error instanceof RunError)) throw error;
    const lines = error.problems.map(
      ({ rule, suggestion = "" }) => `--set ${text}: ${rule}; ${suggestion}`,
    );
    throw new InputError(lines, { cause: error });
  }
}

function reasonOf(error: unknown): string {
  const code = error instanceof Error && "code" in error ? error.code : undefined;
  if (code === "ENOENT") return "no such file";
  if (code === "EISDIR") return "this is a directory; give a run file";
  return error instanceof Error ? error.message : String(error);
}

/** Problems as lines, with the place in the file, or `--set` where the command line put the value. */
function problemLines(
  file: RunFile,
  overrides: readonly Override[],
  problems: readonly Problem[],
): InputError {
  const lines = problems.map((problem) => {
    const set = overrides.some((override) => isWithin(problem.path, override.path));
    return formatProblem(set ? { ...problem, at: "--set" } : file.locate(problem));
  });
  return new InputError(lines);
}

function isWithin(path: Path, parent: Path): boolean {
  return parent.every((key, i) => path[i] === key);
}

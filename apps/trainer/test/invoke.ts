/** Runs a command line against fakes. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Parts } from "../src/composition.ts";
import { type ExitCode, main } from "../src/main.ts";
import { Capture } from "./capture.ts";
import { fakeParts } from "./fake-parts.ts";

/** What a command line came to. */
export interface Outcome {
  readonly code: ExitCode;
  readonly stdout: string;
  readonly stderr: string;
}

export interface InvokeOptions {
  readonly parts?: Parts;
  readonly columns?: number;
  readonly live?: boolean;
  readonly signal?: AbortSignal;
  readonly saveRequested?: () => boolean;
}

export async function invoke(
  args: readonly string[],
  options: InvokeOptions = {},
): Promise<Outcome> {
  const terminal = new Capture(options);
  const interruption = {
    signal: options.signal ?? new AbortController().signal,
    saveRequested: options.saveRequested ?? ((): boolean => false),
  };
  const code = await main(args, terminal, options.parts ?? fakeParts(), interruption);
  return { code, stdout: terminal.stdout, stderr: terminal.stderr };
}

/** A run of ten steps on four ranks over three texts, written to `folder`; gives its path. */
export function writeRun(folder: string, extra = ""): string {
  mkdirSync(join(folder, "texts"), { recursive: true });
  for (const name of ["a", "b", "c", "d"]) {
    writeFileSync(join(folder, "texts", `${name}.txt`), `the ${name} text. `.repeat(60));
  }
  const path = join(folder, "run.yaml");
  writeFileSync(
    path,
    `name: tiny
model:
  layers: 2
  hidden: 16
  heads: 2
  context: 8
plan:
  dp: 2
  pp: 2
  globalBatch: 8
  microbatch: 2
data:
  path: texts
  tokenizer: character
  validation: 0.25
steps: 10
${extra}`,
  );
  return path;
}

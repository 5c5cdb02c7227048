/**
 * `pnpm bench [pattern]`: runs benchmarks, prints value against target and peer, and records one line
 * per figure in docs/benchmarks/latest.jsonl. The pattern is a part of an id ("dataloader", "packing")
 * or of a file's path. Exit code 1 when a benchmark failed or, with --check, a target was missed.
 */
import { fork } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { cpus } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { mergeFigures, reaches } from "./figure.ts";
import { benchmarkFiles, mayMatch } from "./files.ts";
import type { Outcome } from "./run-benchmark.ts";
import type { Job } from "./run-file.ts";
import { printTable } from "./table.ts";

const root = resolve(dirname(fileURLToPath(import.meta.url)), "../../..");

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    check: { type: "boolean", default: false },
    out: { type: "string", default: join(root, "docs/benchmarks/latest.jsonl") },
  },
});
const pattern = positionals[0] ?? "";
const date = new Date().toISOString().replace(/\.\d+Z$/, "Z");
const processors = cpus();
const cpu = `${processors.length} x ${processors[0]?.model.trim() ?? "unknown"}, ${process.platform} ${process.arch}, Node ${process.version}`;

function runFile(file: string): Promise<Outcome[]> {
  // A pattern that names the file takes all of it.
  const job: Job = {
    file: join(root, file),
    pattern: file.includes(pattern) ? "" : pattern,
    date,
    cpu,
  };
  const child = fork(fileURLToPath(new URL("run-file.ts", import.meta.url)), {
    cwd: root,
    execArgv: [...process.execArgv, "--expose-gc"],
    serialization: "advanced",
  });
  const outcomes: Outcome[] = [];
  child.on("message", (outcome: Outcome) => {
    outcomes.push(outcome);
    const name = outcome.kind === "figure" ? outcome.figure.id : outcome.id;
    process.stderr.write(
      `${name}: ${outcome.kind === "figure" ? "done" : `${outcome.kind}: ${outcome.note}`}\n`,
    );
  });
  child.send(job);
  return new Promise((done) => {
    child.on("exit", (code, signal) => {
      const said = outcomes.some(({ kind }) => kind === "failed");
      if (code !== 0 && !said) {
        outcomes.push({
          kind: "failed",
          id: file,
          note: `its process ended with ${signal ?? code}`,
        });
      }
      done(outcomes);
    });
  });
}

const outcomes: Outcome[] = [];
for (const file of benchmarkFiles(root)) {
  if (mayMatch(file, pattern)) outcomes.push(...(await runFile(file)));
}

const figures = outcomes.flatMap((outcome) => (outcome.kind === "figure" ? [outcome.figure] : []));
if (outcomes.length === 0) {
  process.stderr.write(`no benchmark has "${pattern}" in its id or path\n`);
  process.exitCode = 1;
} else {
  process.stdout.write(`${printTable(outcomes)}\n`);
  if (figures.length > 0) {
    mkdirSync(dirname(options.out), { recursive: true });
    const recorded = existsSync(options.out) ? readFileSync(options.out, "utf8") : "";
    writeFileSync(`${options.out}.tmp`, mergeFigures(recorded, figures));
    renameSync(`${options.out}.tmp`, options.out);
    process.stderr.write(`${figures.length} figures recorded in ${options.out}\n`);
  }
  const failed = outcomes.some(({ kind }) => kind === "failed");
  const missed = figures.some((figure) => reaches(figure) === false);
  if (failed || (options.check && missed)) process.exitCode = 1;
}

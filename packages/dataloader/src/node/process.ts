/**
 * Modules of this package started in a process of their own; messages keep typed arrays. From sources
 * the process registers tsx first, as threads do; published code never takes that way.
 */
import { type ChildProcess, fork } from "node:child_process";
import { createRequire } from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";

/** A process that runs `<name>-main` of this folder. */
export function startProcess(name: string): ChildProcess {
  const source = import.meta.url.endsWith(".ts");
  const module = new URL(`./${name}-main${source ? ".ts" : ".js"}`, import.meta.url);
  const tsx = (): string =>
    pathToFileURL(
      createRequire(import.meta.url)
        .resolve("tsx/esm")
        .replace(/\.cjs$/, ".mjs"),
    ).href;
  return fork(fileURLToPath(module), [], {
    serialization: "advanced",
    execArgv: source ? ["--conditions=@trireme/source", "--import", tsx()] : [],
  });
}

/** Processes that run a module of this package; messages keep typed arrays. */
import { type ChildProcess, fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { ownModule, sourceCondition } from "./own-module.ts";

/** Starts `<name>-main` of this folder as a process; from sources it registers tsx first. */
export function startProcess(name: string): ChildProcess {
  const { url, tsx } = ownModule(name);
  const execArgv = tsx === undefined ? [] : [sourceCondition, "--import", tsx("esm")];
  return fork(fileURLToPath(url), [], { serialization: "advanced", execArgv });
}

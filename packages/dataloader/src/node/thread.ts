/** Threads that run a module of this package. */
import { Worker } from "node:worker_threads";
import { ownModule, sourceCondition } from "./own-module.ts";

/** Starts `<name>-main` of this folder as a thread; from sources it registers tsx first. */
export function startThread(name: string, workerData: unknown): Worker {
  const { url, tsx } = ownModule(name);
  if (tsx === undefined) return new Worker(url, { workerData });
  const boot = `import(${JSON.stringify(tsx("esm/api"))}).then((tsx) => {
    tsx.register();
    return import(${JSON.stringify(url.href)});
  });`;
  return new Worker(boot, { eval: true, workerData, execArgv: [sourceCondition] });
}

/** Starts a thread on a module of this package: `dist` JavaScript, or TypeScript while developing. */
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";

/**
 * A worker that runs `module` (a URL of this package without its ending). Node 20 cannot load
 * TypeScript, so from sources the thread first registers tsx; published code never takes that way.
 */
export function spawn(module: URL, workerData: unknown): Worker {
  if (!import.meta.url.endsWith(".ts")) {
    // Without the process's own flags: some, such as --input-type, make a worker fail.
    return new Worker(new URL(`${module.href}.js`), { workerData, execArgv: [] });
  }
  const tsx = createRequire(import.meta.url).resolve("tsx/esm/api");
  const register = pathToFileURL(tsx.replace(/\.cjs$/, ".mjs")).href;
  const boot = `import(${JSON.stringify(register)}).then((tsx) => {
    tsx.register();
    return import(${JSON.stringify(`${module.href}.ts`)});
  });`;
  return new Worker(boot, {
    eval: true,
    workerData,
    execArgv: ["--conditions=@trireme/source"],
  });
}

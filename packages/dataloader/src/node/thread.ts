/** Threads that run a module of this package, from what is published and from the sources. */
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { Worker } from "node:worker_threads";

/**
 * Starts `<name>-main`, a path from this module, as a thread. Its ending is that of this module: `.js` when
 * built, `.ts` in the sources. Node 20 runs no TypeScript, so from sources the thread registers tsx
 * first; published code never takes that way.
 */
export function startThread(name: string, workerData: unknown): Worker {
  const source = import.meta.url.endsWith(".ts");
  const module = new URL(`./${name}-main${source ? ".ts" : ".js"}`, import.meta.url);
  if (!source) return new Worker(module, { workerData });
  const tsx = createRequire(import.meta.url)
    .resolve("tsx/esm/api")
    .replace(/\.cjs$/, ".mjs");
  const boot = `import(${JSON.stringify(pathToFileURL(tsx).href)}).then((tsx) => {
    tsx.register();
    return import(${JSON.stringify(module.href)});
  });`;
  return new Worker(boot, { eval: true, workerData, execArgv: ["--conditions=@trireme/source"] });
}

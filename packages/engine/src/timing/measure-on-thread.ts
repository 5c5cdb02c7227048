/** Measures on a thread of its own. */
import { TriremeError } from "@trireme/core";
import { spawn } from "../rank/spawn.ts";

/**
 * What the thread that runs `module` (a URL of this package without its ending) posts first. Throws
 * `MEASURE` when it ends before.
 */
export function measureOnThread<Measured>(module: URL, seed: unknown): Promise<Measured> {
  return new Promise((resolve, reject) => {
    const worker = spawn(module, seed);
    worker.on("message", (measured: Measured) => {
      resolve(measured);
      void worker.terminate();
    });
    worker.on("error", reject);
    worker.on("exit", (code) => {
      reject(new TriremeError("MEASURE", `a measuring thread ended with exit code ${code}`));
    });
  });
}

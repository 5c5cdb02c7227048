/** A child process that says what happens as lines of JSON. */
import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";

export interface Said {
  readonly kind: string;
  readonly [name: string]: unknown;
}

export interface Child {
  readonly process: ChildProcess;
  readonly said: readonly Said[];
  /** Resolves at the next word that fits, past or to come. */
  until(fits: (said: Said) => boolean, what: string): Promise<Said>;
  /** Kills it and waits until it is gone. */
  kill(signal?: NodeJS.Signals): Promise<void>;
  readonly gone: Promise<number | null>;
}

export function startChild(file: string, options: object): Child {
  const child = spawn(process.execPath, [file, JSON.stringify(options)], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  const said: Said[] = [];
  const listeners = new Set<(said: Said) => void>();
  createInterface(child.stdout).on("line", (line) => {
    const word: Said = JSON.parse(line);
    said.push(word);
    for (const listener of listeners) listener(word);
  });
  const gone = new Promise<number | null>((resolve) => {
    child.once("exit", resolve);
  });
  return {
    process: child,
    said,
    gone,
    until: (fits, what) =>
      new Promise((resolve, reject) => {
        const past = said.find(fits);
        if (past !== undefined) {
          resolve(past);
          return;
        }
        const timer = setTimeout(
          () =>
            reject(
              new Error(`waited 50 s for ${what}; heard ${JSON.stringify(said).slice(-2000)}`),
            ),
          50_000,
        );
        const late = (): void => {
          clearTimeout(timer);
          reject(new Error(`the process ended while ${what} was awaited`));
        };
        const listener = (word: Said): void => {
          if (!fits(word)) return;
          clearTimeout(timer);
          listeners.delete(listener);
          resolve(word);
        };
        listeners.add(listener);
        // Its last words may still be on the way.
        void gone.then(() => setTimeout(() => late(), 200));
      }),
    async kill(signal = "SIGKILL") {
      child.kill(signal);
      await gone;
    },
  };
}

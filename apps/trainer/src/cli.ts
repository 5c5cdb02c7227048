#!/usr/bin/env node
import { realParts } from "./composition.ts";
import { main } from "./main.ts";
import { processTerminal } from "./terminal.ts";

const control = new AbortController();
let saves = 0;

/** Commands that end well when they are asked to; the others the system ends at once. */
const askable: Readonly<Record<string, string>> = {
  train: "stopping after this step",
  prepare: "stopping",
};
const stopping = askable[process.argv[2] ?? "train"];
if (stopping !== undefined) {
  // The first asks, the second insists.
  for (const name of ["SIGINT", "SIGTERM"] as const) {
    process.on(name, () => {
      if (control.signal.aborted) process.exit(1);
      process.stderr.write(`\n${stopping}; once more to stop at once\n`);
      control.abort();
    });
  }
  process.on("SIGUSR2", () => {
    saves++;
  });
}
// A reader that has seen enough, as `head` has, is no failure, and no reason to end a training.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE" && error.code !== "ERR_STREAM_DESTROYED") throw error;
  });
}

const interruption = {
  signal: control.signal,
  saveRequested: (): boolean => saves > 0 && saves-- > 0,
};
process.exitCode = await main(
  process.argv.slice(2),
  processTerminal(process),
  realParts,
  interruption,
);

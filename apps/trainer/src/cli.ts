#!/usr/bin/env node
import { realParts } from "./composition.ts";
import { main } from "./main.ts";
import { processTerminal } from "./terminal.ts";

const control = new AbortController();
let saves = 0;

// The first asks, the second insists.
for (const name of ["SIGINT", "SIGTERM"] as const) {
  process.on(name, () => {
    if (control.signal.aborted) process.exit(1);
    process.stderr.write("\nstopping after this step; once more to stop at once\n");
    control.abort();
  });
}
process.on("SIGUSR2", () => {
  saves++;
});
// A reader that has seen enough, as `head` has, is no failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
});

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

/**
 * The child process of one benchmark file: figures of one file are not disturbed by another's heap,
 * compiled code or crash. Started by `main.ts` with a channel, over which each outcome goes as it comes.
 */
import { pathToFileURL } from "node:url";
import { benchmarksOf } from "./benchmark.ts";
import { runBenchmark } from "./run-benchmark.ts";
import type { Clocks } from "./sample.ts";

/** What the parent sends: the file, which ids to run, and what is the same for all figures. */
export interface Job {
  readonly file: string;
  /** A part of an id; "" for all. */
  readonly pattern: string;
  readonly date: string;
  readonly cpu: string;
}

const clocks: Clocks = {
  wall: () => performance.now() / 1e3,
  cpu: () => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1e6;
  },
};

async function run({ file, pattern, date, cpu }: Job): Promise<void> {
  const benchmarks = benchmarksOf(await import(pathToFileURL(file).href), file);
  for (const benchmark of benchmarks) {
    if (!benchmark.id.includes(pattern)) continue;
    process.send?.(await runBenchmark(benchmark, { clocks, date, cpu }));
  }
}

process.once("message", (job: Job) => {
  run(job).then(
    () => process.exit(0),
    (error: unknown) => {
      process.send?.({
        kind: "failed",
        id: job.file,
        note: error instanceof Error ? error.message : String(error),
      });
      process.exit(1);
    },
  );
});

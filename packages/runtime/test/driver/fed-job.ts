/** Jobs whose ranks are fed by a loader of their host, and what is checked of them. */
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { HostLoaderOptions } from "@trireme/dataloader/node";
import type { AgentOptions, GenerationStart, WorkerCommand } from "@trireme/runtime/node";
import { afterAll, beforeAll, expect } from "vitest";
import { type LoaderFixture, loaderFixture } from "../loader-fixture.ts";
import { bundle } from "./bundle.ts";
import { type Job, newJob } from "./job.ts";

const steps = 6;
let worker: string;
let fixture: LoaderFixture;
const jobs: Job[] = [];
beforeAll(async () => {
  [worker = ""] = await bundle("fed-worker");
  fixture = await loaderFixture();
});
afterAll(() => {
  fixture.remove();
  for (const job of jobs) job.clear();
});

interface Line {
  readonly generation: number;
  readonly rank: number;
  readonly step: number;
  readonly documents: readonly number[];
  readonly data: unknown;
}

/** A job of two hosts whose ranks are fed by loaders that go on from what the workers stored. */
export function fedJob(kind: WorkerCommand["kind"], more: Partial<HostLoaderOptions> = {}) {
  const job = newJob();
  jobs.push(job);
  const log = join(job.directory, "steps");
  const commands = join(job.directory, "commands");
  const starts: GenerationStart[] = [];
  const environment = { STEPS: String(steps), LOG: log, COMMANDS: commands };
  const command: WorkerCommand =
    kind === "process"
      ? { kind, command: process.execPath, arguments: [worker], environment }
      : { kind, file: pathToFileURL(worker), environment, data: "its own" };
  const options = (ranks: number): Partial<AgentOptions> => ({
    ranks,
    worker: command,
    loader: (start) => {
      starts.push(start);
      const file = join(commands, `loader-${start.step - 1}.json`);
      const state: unknown = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : undefined;
      const { actors: _, ...given } = fixture.options(start.launch.world);
      return { ...given, ...more, ...(state === undefined ? {} : { state }) };
    },
  });
  const lines = (): Line[] =>
    readFileSync(log, "utf8")
      .split("\n")
      .filter((line) => line !== "")
      .map((line): Line => JSON.parse(line));
  return { job, options, lines, starts };
}

/** Documents of each step over all ranks; of a step that was trained twice, of the last time. */
function batches(lines: readonly Line[]): number[][] {
  return Array.from({ length: steps }, (_, i) => {
    const own = lines.filter(({ step }) => step === i + 1);
    const last = Math.max(...own.map(({ generation }) => generation));
    const documents = own.flatMap((line) => (line.generation === last ? line.documents : []));
    return documents.sort((a, b) => a - b);
  });
}

/** Kills a rank of two hosts and compares what all were given with what one host alone is given. */
export async function expectSameBatchesAfterAKill(
  kind: WorkerCommand["kind"],
  more: Partial<HostLoaderOptions> = {},
): Promise<readonly Line[]> {
  const { job, options, lines, starts } = fedJob(kind, more);
  const driver = await job.driver();
  const agents = [0, 1].map((host) => job.agent(host, driver.endpoint, options(2)));
  job.command("crash", 1);
  const result = await driver.result;
  await Promise.all(agents.map((agent) => agent.result));
  expect(result).toMatchObject({ ok: true, step: steps });
  expect(new Set(starts.map(({ launch }) => launch.generation))).toEqual(new Set([1, 2]));
  // 12 documents a batch, none of them twice in an epoch of 40.
  const found = batches(lines());
  for (const batch of found) expect(batch).toHaveLength(12);
  expect(new Set(found.slice(0, 3).flat()).size).toBe(36);

  const calm = fedJob("thread", { actors: "inline" });
  const other = await calm.job.driver({ hosts: 1 });
  const alone = calm.job.agent(0, other.endpoint, calm.options(1));
  expect(await other.result).toMatchObject({ ok: true });
  await alone.result;
  expect(batches(calm.lines())).toEqual(found);
  // The memory of the loaders goes with them.
  expect(readdirSync("/dev/shm").filter((name) => name.startsWith(own))).toEqual([]);
  return lines();
}

const own = `trireme-loader-${process.pid}-`;

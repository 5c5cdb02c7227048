import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { type RankFeed, rankBatches } from "@trireme/dataloader/node";
import { GenerationLoader, encodeFeed } from "@trireme/runtime/node";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type LoaderFixture, loaderFixture } from "../loader-fixture.ts";

let fixture: LoaderFixture;
beforeAll(async () => {
  fixture = await loaderFixture();
});
afterAll(() => fixture.remove());

const script = fileURLToPath(new URL("rank-process.ts", import.meta.url));
const steps = 4;

async function readInProcess(feed: RankFeed): Promise<unknown[]> {
  const argv = ["--conditions=@trireme/source", "--import", "tsx", script];
  const env = { ...process.env, TRIREME_FEED: encodeFeed(feed) };
  const child = spawn(process.execPath, argv, { env, stdio: ["ignore", "pipe", "inherit"] });
  const [out, [code]] = await Promise.all([text(child.stdout), once(child, "exit")]);
  expect(code).toBe(0);
  return out
    .trim()
    .split("\n")
    .map((line): unknown => JSON.parse(line));
}

async function readHere(feed: RankFeed): Promise<unknown[]> {
  const lines: unknown[] = [];
  for await (const { step, microbatches } of rankBatches(feed)) {
    lines.push({ step, tokens: microbatches.map(({ tokens }) => [...tokens]) });
  }
  return lines;
}

it("ranks that are processes read from files in memory what ranks here read from shared memory", async () => {
  const fail = (_: number, error: Error): void => {
    throw error;
  };
  const loaders = new GenerationLoader(fail);
  const here = await loaders.begin(0, fixture.options(2, { steps }));
  const expected = await Promise.all([...here.values()].map(readHere));
  expect(expected[0]).toHaveLength(steps);

  const feeds = await loaders.begin(1, fixture.options(2, { steps, actors: "process" }));
  const paths = [...feeds.values()].map(({ ring }) => (ring.kind === "file" ? ring.path : ""));
  expect(paths.every((path) => existsSync(path))).toBe(true);
  expect(await Promise.all([...feeds.values()].map(readInProcess))).toEqual(expected);
  loaders.end(1);
  // The memory goes with the generation.
  expect(paths.some((path) => existsSync(path))).toBe(false);
});

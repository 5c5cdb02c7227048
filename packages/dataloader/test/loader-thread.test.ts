import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { createRng } from "@trireme/core";
import { createLoader, streamBatches, tokenDataset } from "@trireme/dataloader";
import { type LoaderThread, startLoaderThread, writeMegatronFiles } from "@trireme/dataloader/node";

let directory = "";
const tokens = Int32Array.from({ length: 2000 }, (_, i) => (i * 31) % 500);
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "trireme-thread-"));
  const part = (from: number, to: number) =>
    tokenDataset(tokens.slice(from, to), Float64Array.of(to - from), 500);
  await writeMegatronFiles(join(directory, "a"), part(0, 700));
  await writeMegatronFiles(join(directory, "b"), part(700, 2000));
});
afterAll(async () => {
  await rm(directory, { recursive: true });
});

const shape = { sequence: 16, globalBatch: 8, dp: 2, microbatch: 2, seed: 3 };
const expected = createLoader({
  ...shape,
  dataset: tokenDataset(tokens, Float64Array.of(2000), 500),
});

test("threads that are killed at random change nothing in what a stream gives", async () => {
  const prefixes = [join(directory, "a"), join(directory, "b")];
  const alive: LoaderThread[] = [];
  let started = 0;
  const start = (): LoaderThread => {
    started++;
    const thread = startLoaderThread({ ...shape, prefixes });
    alive.push(thread);
    return thread;
  };
  const rng = createRng(2);
  let next = 0;
  for await (const batch of streamBatches({
    start,
    workers: 2,
    from: 0,
    prefetch: 4,
    steps: 24,
    attempts: 10,
  })) {
    expect(batch).toEqual(expected.batch(next++));
    if (rng.float() < 0.25) alive[rng.integer(alive.length)]!.kill();
  }
  expect(next).toBe(24);
  // Some of the two were killed while they were of use.
  expect(started).toBeGreaterThan(2);
});

test("what is wrong with the files is told by the first batch", async () => {
  const thread = startLoaderThread({ ...shape, prefixes: [join(directory, "none")] });
  await expect(thread.batch(0)).rejects.toThrow("none.bin: no such file");
  thread.close();
  const good = startLoaderThread({ ...shape, prefixes: [join(directory, "a")] });
  await expect(good.batch(-1)).rejects.toThrow("step -1 is outside");
  const first = good.batch(0);
  await expect(good.batch(1)).rejects.toThrow("one batch at a time");
  expect((await first).rows).toBe(8);
  good.kill();
  await expect(good.batch(2)).rejects.toThrow("a loader thread ended");
});

test("a thread that does not answer is ended when its time is up, and a stream goes on with others", async () => {
  const prefixes = [join(directory, "a"), join(directory, "b")];
  expect(() => startLoaderThread({ ...shape, prefixes, deadline: NaN })).toThrow("deadline NaN s");
  // A microsecond is over before any thread has started.
  const late = startLoaderThread({ ...shape, prefixes, deadline: 1e-6 });
  await expect(late.batch(3)).rejects.toThrow(
    "a loader thread has not made step 3 within 0.000001 s",
  );
  await expect(late.batch(3)).rejects.toThrow("has not made step 3");
  let started = 0;
  const start = (): LoaderThread =>
    startLoaderThread({ ...shape, prefixes, ...(started++ === 0 ? { deadline: 1e-6 } : {}) });
  const stream = streamBatches({ start, workers: 1, from: 0, steps: 1, prefetch: 1 });
  for await (const { step, tokens: got } of stream) {
    expect(got).toEqual(expected.batch(step).tokens);
  }
  expect(started).toBe(2);
});

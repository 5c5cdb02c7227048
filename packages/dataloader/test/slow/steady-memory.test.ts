/** What does not grow: with the epochs (streaming#758), and with the corpus (Megatron-LM#154). */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { type TokenSource, createLoader, streamBatches } from "@trireme/dataloader";
import { startHostLoader } from "@trireme/dataloader/node";
import { expect, test } from "vitest";
import { common, plannerOf, writeSources } from "../host-loader-fixture.ts";

setFlagsFromString("--expose-gc");
const collect: () => void = runInNewContext("gc");

/** Bytes that are reachable, whatever the collector has not come to yet. */
function held(): number {
  collect();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}

/** A leak of 50 bytes a step would be above it; what the compiler still adds is half of it. */
const slack = 2e5;

test("a host's loader holds no more after 1,000 epochs than after 400", async () => {
  const { sources, remove } = await writeSources();
  // Some 58 documents are an epoch, 12 are a step.
  const planner = plannerOf({ dp: 1, cp: 1, tp: 1, microbatches: 1, method: "order" });
  const loader = await startHostLoader({ ...common, planner, sources, actors: "inline" });
  const batches = loader.batches(0);
  const readTo = async (step: number): Promise<number> => {
    for (;;) {
      const { value } = await batches.next();
      if (value!.step === step) return held();
    }
  };
  const early = await readTo(2000);
  expect((await readTo(6000)) - early).toBeLessThan(slack);
  loader.close();
  remove();
}, 60_000);

test("a stream of batches holds no more after 1,200 epochs than after 400", async () => {
  const source: TokenSource = { length: 121, fingerprint: "few", read: (_, into) => into.fill(1) };
  const sizes = { sequence: 4, globalBatch: 6, dp: 1, microbatch: 1, seed: 0 };
  const loader = createLoader({ dataset: source, ...sizes });
  const start = () => ({
    batch: (step: number) => Promise.resolve(loader.batch(step)),
    close: () => undefined,
  });
  let early = 0;
  for await (const { step } of streamBatches({ start, workers: 2, from: 0, prefetch: 4 })) {
    if (step === 2000) early = held();
    if (step === 6000) break;
  }
  expect(held() - early).toBeLessThan(slack);
});

test("a loader over 2^50 tokens is made and read without an index of them", () => {
  const length = 2 ** 50;
  const read = (at: number, into: Int32Array): void => {
    for (let i = 0; i < into.length; i++) into[i] = (at + i) % 1000;
  };
  const before = held();
  const sizes = { sequence: 4096, globalBatch: 8, dp: 2, microbatch: 2, seed: 0 };
  const dataset: TokenSource = { length, fingerprint: "many", read };
  const loader = createLoader({ dataset, ...sizes });
  const { samples } = loader.plan(2 ** 36);
  const { tokens, width } = loader.batch(2 ** 36);
  samples.forEach((sample, row) => {
    expect(tokens[row * width]).toBe((sample * 4096) % 1000);
  });
  // Eight bytes a sample would be 2 TB.
  expect(held() - before).toBeLessThan(4e6);
});

import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { textDirectory } from "@trireme/corpus";
import {
  byteTokenizer,
  characterTokenizer,
  createLoader,
  restoreTokenizer,
  splitDocuments,
  streamBatches,
  tokenize,
} from "@trireme/dataloader";
import { prepareTokens, readTextDocuments, startLoaderThread } from "@trireme/dataloader/node";

test("a real corpus goes from files to batches and back to its own text", async () => {
  const documents = await readTextDocuments(textDirectory);
  expect(documents.length).toBe(233);
  // 10,761,413 bytes of UTF-8: the corpus is the one that its README names.
  expect(documents.reduce((sum, { text }) => sum + Buffer.byteLength(text), 0)).toBe(10_761_413);

  const { train, validation } = splitDocuments(documents, { validation: 0.05, seed: 1 });
  expect([train.length, validation.length]).toEqual([221, 12]);
  const tokenizer = characterTokenizer(train.map(({ text }) => text));
  const dataset = tokenize(train, restoreTokenizer(JSON.parse(JSON.stringify(tokenizer))));
  const loader = createLoader({
    dataset,
    sequence: 256,
    globalBatch: 12,
    dp: 2,
    microbatch: 3,
    seed: 7,
  });

  const stream = train.map(({ text }) => text).join("");
  const step = loader.samplesPerEpoch * 3 + 5;
  const { samples } = loader.plan(step);
  const { tokens, width } = loader.batch(step);
  samples.forEach((sample, row) => {
    // Every character of this corpus is one UTF-16 unit, so that token and text positions agree.
    const text = stream.slice(sample * 256, sample * 256 + width);
    expect(tokenizer.decode(tokens.subarray(row * width, (row + 1) * width))).toBe(text);
  });
}, 30_000);

test("the corpus is prepared to files and streamed from threads in the order of memory", async () => {
  const documents = await readTextDocuments(textDirectory);
  const folder = await mkdtemp(join(tmpdir(), "trireme-corpus-"));
  try {
    const prefix = join(folder, "sotu");
    const report = await prepareTokens({ documents, tokenizer: byteTokenizer(), prefix });
    expect(report).toEqual({
      documents: 233,
      tokens: 10_761_413,
      bytes: 21_522_826,
      textBytes: 10_761_413,
      // A header of 34 bytes, 12 a sequence, 8 a document and the end of the last.
      indexBytes: 34 + 12 * 233 + 8 * 234,
      resumed: 0,
    });

    const shape = { sequence: 1024, globalBatch: 16, dp: 4, microbatch: 2, seed: 11 };
    const memory = createLoader({ ...shape, dataset: tokenize(documents, byteTokenizer()) });
    const start = () => startLoaderThread({ ...shape, prefixes: [prefix] });
    let step = 656;
    // Over the end of the first epoch: 10,509 samples.
    for await (const batch of streamBatches({
      start,
      workers: 2,
      from: step,
      prefetch: 4,
      steps: 4,
    })) {
      expect(batch.tokens).toEqual(memory.batch(step++).tokens);
    }
    expect(step).toBe(660);
  } finally {
    await rm(folder, { recursive: true });
  }
}, 60_000);

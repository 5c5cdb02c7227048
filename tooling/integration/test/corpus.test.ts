import { expect, test } from "vitest";
import { textDirectory } from "@trireme/corpus";
import {
  characterTokenizer,
  createLoader,
  restoreTokenizer,
  splitDocuments,
  tokenize,
} from "@trireme/dataloader";
import { readTextDocuments } from "@trireme/dataloader/node";

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

import { appendFile, mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Document, byteTokenizer, characterTokenizer, tokenize } from "@trireme/dataloader";
import { openMegatronFiles, prepareTokens, writeMegatronFiles } from "@trireme/dataloader/node";

let directory = "";
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "trireme-prepare-"));
});
afterAll(async () => {
  await rm(directory, { recursive: true });
});

const documents: readonly Document[] = Array.from({ length: 40 }, (_, i) => ({
  name: `d${i}`,
  text: `document ${i} `.repeat(i),
}));
const both = async (prefix: string) => [
  await readFile(`${prefix}.bin`),
  await readFile(`${prefix}.idx`),
];

test("gives the files that tokenising in memory gives", async () => {
  const [ours, memory] = [join(directory, "ours"), join(directory, "memory")];
  const tokenizer = byteTokenizer();
  const report = await prepareTokens({ documents, tokenizer, prefix: ours, flushBytes: 500 });
  await writeMegatronFiles(memory, tokenize(documents, tokenizer));
  expect(await both(ours)).toEqual(await both(memory));
  const tokens = tokenize(documents, tokenizer).tokens.length;
  expect(report).toEqual({ documents: 40, tokens, bytes: 2 * tokens, resumed: 0 });
});

test("a run stopped at any document goes on and ends with the same bytes", async () => {
  const tokenizer = characterTokenizer(documents.map(({ text }) => text));
  const whole = join(directory, "whole");
  await prepareTokens({ documents, tokenizer, prefix: whole, endOfDocument: 3 });
  const expected = await both(whole);
  for (const stop of [1, 39]) {
    const prefix = join(directory, `stopped-${stop}`);
    const options = { tokenizer, prefix, endOfDocument: 3, flushBytes: 3000 };
    function* failing(): Generator<Document> {
      yield* documents.slice(0, stop);
      throw new Error("power cut");
    }
    await expect(prepareTokens({ ...options, documents: failing() })).rejects.toThrow("power cut");
    // What a crash may leave behind what counts: half a write.
    await appendFile(`${prefix}.partial.bin`, "xyz");
    await appendFile(`${prefix}.partial.lengths`, "x");
    const report = await prepareTokens({ ...options, documents });
    expect(await both(prefix)).toEqual(expected);
    expect(report.documents).toBe(40);
    expect(report.resumed).toBeLessThanOrEqual(stop);
    expect(stop < 39 || report.resumed > 0).toBe(true);
    expect((await readdir(directory)).filter((name) => name.includes("partial"))).toEqual([]);
  }
});

test("an end token follows each document, and progress is told as it reaches the disk", async () => {
  const prefix = join(directory, "ends");
  const told: number[] = [];
  await prepareTokens({
    documents: documents.slice(0, 3),
    tokenizer: byteTokenizer(),
    prefix,
    endOfDocument: 0,
    flushBytes: 1,
    onProgress: (progress) => told.push(progress.documents),
  });
  const files = await openMegatronFiles(prefix);
  const { index, source } = files;
  expect([...index.lengths]).toEqual([1, 12, 23]);
  const into = new Int32Array(2);
  source.read(12, into);
  expect([...into]).toEqual([0, "d".charCodeAt(0)]);
  files.close();
  expect(told).toEqual([1, 2, 3, 3]);
});

test("other documents, another tokenizer or a stop by signal never mix with what was done", async () => {
  const prefix = join(directory, "mixed");
  const tokenizer = byteTokenizer();
  const abort = new AbortController();
  const stopping = { documents, tokenizer, prefix, flushBytes: 1, signal: abort.signal };
  const stopped = prepareTokens({
    ...stopping,
    onProgress: ({ documents: done }) => void (done === 5 && abort.abort(new Error("enough"))),
  });
  await expect(stopped).rejects.toThrow("enough");
  const go = (change: Partial<Parameters<typeof prepareTokens>[0]>) =>
    prepareTokens({ documents, tokenizer, prefix, ...change });
  await expect(go({ documents: documents.slice(1) })).rejects.toThrow(
    "the first 5 documents are not those",
  );
  await expect(go({ documents: documents.slice(0, 3) })).rejects.toThrow(
    "3 documents, but the stopped run had done 5",
  );
  await expect(go({ tokenizer: characterTokenizer(["abc"]) })).rejects.toThrow("another tokenizer");
  await expect(go({ endOfDocument: 256 })).rejects.toThrow(
    "endOfDocument 256 is outside the vocabulary",
  );
  expect((await go({})).resumed).toBe(5);
  await expect(go({ prefix: join(directory, "no/such/x") })).rejects.toThrow(
    "does its directory exist?",
  );
});

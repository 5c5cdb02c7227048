import { copyFileSync } from "node:fs";
import {
  appendFile,
  copyFile,
  mkdtemp,
  readFile,
  readdir,
  rm,
  stat,
  truncate,
  writeFile,
} from "node:fs/promises";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Document, byteTokenizer, characterTokenizer, tokenize } from "@trireme/dataloader";
import { openMegatronFiles, prepareTokens, writeMegatronFiles } from "@trireme/dataloader/node";
import { tiktokenEncoding } from "@trireme/dataloader/tokenizer";

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
  expect(report).toEqual({
    documents: 40,
    tokens,
    bytes: 2 * tokens,
    textBytes: tokens,
    indexBytes: (await stat(`${ours}.idx`)).size,
    resumed: 0,
  });
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

test("any number of threads gives the same bytes, and progress in order", async () => {
  const [tokenizer, many] = [await tiktokenEncoding("gpt2"), documents.slice(20)];
  const expected = join(directory, "one");
  const options = { documents: many, tokenizer, endOfDocument: 50_256, flushBytes: 2000 };
  await prepareTokens({ ...options, prefix: expected, workers: 0 });
  for (const workers of [1, 3]) {
    const prefix = join(directory, `threads-${workers}`);
    const told: number[] = [];
    await prepareTokens({
      ...options,
      prefix,
      workers,
      onProgress: (progress) => told.push(progress.documents),
    });
    expect(await both(prefix)).toEqual(await both(expected));
    expect(told).toEqual([...told].sort((a, b) => a - b));
    expect(told.at(-1)).toBe(20);
  }
});

test("a run killed at any step of putting the files in place goes on", async () => {
  const tokenizer = byteTokenizer();
  const whole = join(directory, "placed");
  await prepareTokens({ documents, tokenizer, prefix: whole });
  const expected = await both(whole);
  const parts = ["partial.json", "partial.bin", "partial.lengths"] as const;
  // Taken while the last progress is told: all is on the disk, nothing is in place.
  const prefix = join(directory, "place");
  const keep = (from: string, to: string) => copyFile(`${prefix}.${from}`, `${prefix}.${to}`);
  await prepareTokens({
    documents,
    tokenizer,
    prefix,
    onProgress: () => {
      for (const part of parts) copyFileSync(`${prefix}.${part}`, `${prefix}.kept.${part}`);
    },
  });
  const note = JSON.parse(await readFile(`${prefix}.kept.partial.json`, "utf8"));
  const finished = JSON.stringify({ ...note, finished: true });
  const reset = async (): Promise<void> => {
    for (const part of parts) await keep(`kept.${part}`, part);
    for (const end of ["bin", "idx"]) await rm(`${prefix}.${end}`, { force: true });
  };
  const states: readonly (() => Promise<void>)[] = [
    async () => undefined,
    async () => writeFile(`${prefix}.partial.json`, finished),
    async () => {
      await writeFile(`${prefix}.partial.json`, finished);
      await writeFile(`${prefix}.partial.idx`, "half an ind");
    },
    async () => {
      await writeFile(`${prefix}.partial.json`, finished);
      await keep("partial.bin", "bin");
      await rm(`${prefix}.partial.bin`);
    },
  ];
  for (const state of states) {
    await reset();
    await state();
    const report = await prepareTokens({ documents, tokenizer, prefix });
    expect(report.resumed).toBe(40);
    expect(await both(prefix)).toEqual(expected);
    expect((await readdir(directory)).filter((name) => name.startsWith("place.partial"))).toEqual(
      [],
    );
  }
  // What cannot be: tokens that the note counts are gone.
  await reset();
  await truncate(`${prefix}.partial.bin`, 100);
  await expect(prepareTokens({ documents, tokenizer, prefix })).rejects.toThrow(
    "place.partial.bin: 100 bytes, but the stopped run had written",
  );
  await reset();
  await writeFile(`${prefix}.partial.json`, finished);
  const more = [...documents, { name: "more", text: "x" }];
  await expect(prepareTokens({ documents: more, tokenizer, prefix })).rejects.toThrow(
    "more documents than the 40",
  );
});

test("a tokenizer of one's own works on the calling thread, and is refused on others by name", async () => {
  const own = { ...byteTokenizer(), toJSON: () => ({ kind: "own" }) };
  const options = { documents, tokenizer: own, flushBytes: 100 };
  const alone = await prepareTokens({ ...options, prefix: join(directory, "own"), workers: 0 });
  expect(alone.documents).toBe(40);
  const prefix = join(directory, "own-2");
  await expect(prepareTokens({ ...options, prefix, workers: 1 })).rejects.toThrow(
    'tokenizer kind "own" is not known',
  );
  await expect(prepareTokens({ ...options, prefix, workers: -1 })).rejects.toThrow("workers -1");
});

test("a signal does not wait for a document that does not come", async () => {
  const prefix = join(directory, "waiting");
  const stop = new AbortController();
  async function* endless(): AsyncGenerator<Document> {
    yield documents[1]!;
    await new Promise(() => undefined);
  }
  const tokenizer = byteTokenizer();
  const running = prepareTokens({ documents: endless(), tokenizer, prefix, signal: stop.signal });
  setTimeout(() => stop.abort(new Error("enough")), 20);
  await expect(running).rejects.toThrow("enough");
});

test("two runs of one preparation are told apart, and a dead one's lock is taken over", async () => {
  const prefix = join(directory, "twice");
  const o = { documents, tokenizer: byteTokenizer(), prefix, workers: 0 };
  const [first, second] = await Promise.allSettled([prepareTokens(o), prepareTokens(o)]);
  expect(first.status).toBe("fulfilled");
  expect(second).toMatchObject({ reason: { code: "PREPARE" } });
  expect(String(second.status === "rejected" && second.reason)).toContain(
    `process ${process.pid} of ${hostname()} is preparing it`,
  );
  expect((await readdir(directory)).filter((name) => name.startsWith("twice.partial"))).toEqual([]);
  await writeFile(`${prefix}.partial.lock`, `99999999 ${hostname()}`);
  await prepareTokens(o);
});

test("a flush size that is none is refused: nothing would reach the disk", async () => {
  const o = { documents, tokenizer: byteTokenizer(), prefix: join(directory, "odd"), workers: 0 };
  for (const flushBytes of [NaN, 0, -1]) {
    await expect(prepareTokens({ ...o, flushBytes })).rejects.toThrow(
      `flushBytes ${flushBytes} is not positive`,
    );
  }
});

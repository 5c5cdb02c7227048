import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRng } from "@trireme/core";
import { type Document, type Tokenizer, byteTokenizer, encodeJsonLines } from "@trireme/dataloader";
import { prepareTokens, readCorpus } from "@trireme/dataloader/node";
import { encodeParquet } from "@trireme/dataloader/parquet";
import { tiktokenEncoding } from "@trireme/dataloader/tokenizer";
import { zstdCompress } from "@trireme/dataloader/zstd";

// 8 million characters in 800 documents: words of English letters with the lengths and the repetition
// (Zipf's law over 20,000 words) of a text.
const rng = createRng(5);
const letters = "etaoinshrdlucmfwygpbvk";
const words = Array.from({ length: 20_000 }, () => {
  const length = 2 + Math.floor(-3 * Math.log(1 - rng.float()));
  return Array.from(
    { length },
    () => letters[Math.floor(letters.length * rng.float() ** 1.6)],
  ).join("");
});
const texts = Array.from({ length: 800 }, () => {
  let text = "";
  while (text.length < 10_000) {
    const word = words[Math.floor(words.length ** rng.float()) - 1] ?? words[0]!;
    text += rng.float() < 0.1 ? `${word}.\n` : `${word} `;
  }
  return text;
});
const characters = texts.reduce((sum, text) => sum + text.length, 0);
const documents: readonly Document[] = texts.map((text, i) => ({ name: String(i), text }));

const directory = mkdtempSync(join(tmpdir(), "trireme-bench-"));
process.once("exit", () => rmSync(directory, { recursive: true }));
const gpt2 = await tiktokenEncoding("gpt2");
const prepare = (tokenizer: Tokenizer, workers: number, list = documents) =>
  prepareTokens({ documents: list, tokenizer, prefix: join(directory, "x"), workers });
/** Five times the texts, for what has a start to pay for. */
const many = Array.from({ length: 5 }, () => documents).flat();
const { tokens } = await prepare(gpt2, 0);

const files = { parquet: join(directory, "x.parquet"), zstd: join(directory, "x.jsonl.zst") };
writeFileSync(files.parquet, await encodeParquet({ text: texts }, { rowGroup: 100 }));
writeFileSync(files.zstd, await zstdCompress(encodeJsonLines(texts.map((text) => ({ text })))));
async function readAll(path: string): Promise<void> {
  for await (const { text } of await readCorpus([path])) void text.length;
}

/** Wall seconds. */
async function wall(run: () => Promise<unknown>): Promise<number> {
  const start = performance.now();
  await run();
  return (performance.now() - start) / 1000;
}

export const benchmarks = [
  {
    id: "dataloader/prepare-gpt2",
    what: "8 million characters prepared to .bin/.idx with GPT-2's BPE, hashed and flushed, on one core",
    unit: "tokens/s",
    better: "higher",
    target: null,
    amount: tokens,
    repeats: 3,
    time: (): Promise<unknown> => prepare(gpt2, 0),
    peer: {
      name: "tiktoken 1.0.22, encoding alone",
      time: async (): Promise<void> => {
        const { get_encoding: encodingOf } = await import("tiktoken");
        const encoding = encodingOf("gpt2");
        for (const text of texts) encoding.encode_ordinary(text);
        encoding.free();
      },
    },
  },
  {
    id: "dataloader/prepare-bytes",
    what: "8 million characters prepared to .bin/.idx, a token a byte, hashed and flushed, on one core",
    unit: "tokens/s",
    better: "higher",
    target: null,
    amount: characters,
    repeats: 3,
    time: (): Promise<unknown> => prepare(byteTokenizer(), 0),
  },
  {
    id: "dataloader/prepare-threads",
    what: "wall time of preparing 40 million characters with GPT-2's BPE on the calling thread over that on two threads, their start included",
    unit: "ratio",
    better: "higher",
    target: null,
    measure: async (): Promise<number> =>
      (await wall(() => prepare(gpt2, 0, many))) / (await wall(() => prepare(gpt2, 2, many))),
  },
  {
    id: "dataloader/read-parquet",
    what: "texts read from a Parquet file (snappy), bytes of text in a CPU second",
    unit: "B/s",
    better: "higher",
    target: null,
    amount: characters,
    repeats: 3,
    time: (): Promise<void> => readAll(files.parquet),
  },
  {
    id: "dataloader/read-zstd",
    what: "texts read from JSON Lines under zstd, bytes of text in a CPU second",
    unit: "B/s",
    better: "higher",
    target: null,
    amount: characters,
    repeats: 3,
    time: (): Promise<void> => readAll(files.zstd),
  },
] as const;

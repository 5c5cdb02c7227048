import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { expect, test } from "vitest";
import { textDirectory } from "@trireme/corpus";
import { encodeJsonLines, streamBatches } from "@trireme/dataloader";
import {
  openMegatronFiles,
  prepareTokens,
  readCorpus,
  startLoaderThread,
} from "@trireme/dataloader/node";
import { encodeParquet } from "@trireme/dataloader/parquet";
import { tiktokenEncoding } from "@trireme/dataloader/tokenizer";
import { zstdCompress } from "@trireme/dataloader/zstd";

async function digest(path: string): Promise<string> {
  const hash = createHash("sha256");
  await pipeline(createReadStream(path), hash);
  return hash.digest("hex");
}

test("a real corpus in three formats is the same GPT-2 tokens, and streams back as its own text", async () => {
  const folder = await mkdtemp(join(tmpdir(), "trireme-bpe-"));
  try {
    const plain = await readCorpus([textDirectory]);
    const texts: string[] = [];
    for await (const { text } of plain) texts.push(text);
    const [parquet, lines] = [join(folder, "sotu.parquet"), join(folder, "sotu.jsonl.zst")];
    await writeFile(parquet, await encodeParquet({ text: texts }, { rowGroup: 50 }));
    const jsonl = encodeJsonLines(texts.map((text) => ({ text })));
    await writeFile(lines, await zstdCompress(jsonl));

    const tokenizer = await tiktokenEncoding("gpt2");
    const corpora = [plain, await readCorpus([parquet]), await readCorpus([lines])];
    const endOfDocument = 50_256;
    const prints: string[] = [];
    for (const [i, documents] of corpora.entries()) {
      const prefix = join(folder, `p${i}`);
      // From none to more threads than cores: the bytes are the same.
      const report = await prepareTokens({
        documents,
        tokenizer,
        prefix,
        endOfDocument,
        workers: i,
      });
      // 2,074,279 tokens by tiktoken, as counted when the corpus was chosen, and an end for each text.
      expect(report).toMatchObject({
        documents: 233,
        tokens: 2_074_279 + 233,
        textBytes: 10_761_413,
        resumed: 0,
      });
      expect(report.bytes).toBe((await stat(`${prefix}.bin`)).size);
      expect(report.indexBytes).toBe((await stat(`${prefix}.idx`)).size);
      prints.push(`${await digest(`${prefix}.bin`)} ${await digest(`${prefix}.idx`)}`);
    }
    expect(new Set(prints).size).toBe(1);

    const prefix = join(folder, "p0");
    const files = await openMegatronFiles(prefix);
    expect(files.index.lengths.length).toBe(233);
    const first = new Int32Array(files.index.lengths[0]!);
    files.source.read(0, first);
    expect(first.at(-1)).toBe(endOfDocument);
    expect(tokenizer.decode(first.subarray(0, -1))).toBe(texts[0]);
    files.close();

    const whole = `${texts.join("<|endoftext|>")}<|endoftext|>`;
    const shape = { sequence: 512, globalBatch: 8, dp: 2, microbatch: 2, seed: 5 };
    const start = () => startLoaderThread({ ...shape, prefixes: [prefix] });
    let steps = 0;
    for await (const { tokens, width } of streamBatches({
      start,
      workers: 2,
      from: 0,
      prefetch: 2,
      steps: 3,
    })) {
      expect(tokens.length).toBe(8 * width);
      const text = tokenizer.decode(tokens.subarray(0, width));
      // A sample may begin or end within a character.
      expect(whole).toContain(text.replace(/^\ufffd+|\ufffd+$/g, ""));
      steps++;
    }
    expect(steps).toBe(3);
  } finally {
    await rm(folder, { recursive: true });
  }
}, 300_000);

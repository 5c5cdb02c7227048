import { mkdir, mkdtemp, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import { encodeJsonLines } from "@trireme/dataloader";
import { type Corpus, readCorpus } from "@trireme/dataloader/node";
import { encodeParquet } from "@trireme/dataloader/parquet";
import { zstdCompress } from "@trireme/dataloader/zstd";

let directory = "";
const utf8 = (text: string) => new TextEncoder().encode(text);
const lines = (...texts: string[]) => encodeJsonLines(texts.map((body) => ({ body })));
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "trireme-corpus-"));
  await mkdir(join(directory, "sub.txt"));
  const files: Readonly<Record<string, Uint8Array>> = {
    "a.txt": utf8("plain ü"),
    "b.txt.gz": gzipSync("zipped ü"),
    "c.txt.zst": await zstdCompress(utf8("zstd ü")),
    "d.jsonl": lines("d1", "d2"),
    "e.jsonl.gz": gzipSync(lines("e1")),
    "f.ndjson.zst": await zstdCompress(lines("f1", "")),
    "g.parquet": await encodeParquet({ other: [[1], [2], [3]], body: ["g1", "g2", "g3"] }),
    "h.csv": utf8("not,text"),
  };
  for (const [name, bytes] of Object.entries(files)) await writeFile(join(directory, name), bytes);
});
afterAll(async () => {
  await rm(directory, { recursive: true });
});

async function textsOf(corpus: Corpus): Promise<string[]> {
  const texts: string[] = [];
  for await (const { text } of corpus) texts.push(text);
  return texts;
}

test("a directory gives the documents of every format in the order of names, as often as asked", async () => {
  const corpus = await readCorpus([directory], { field: "body" });
  const texts = ["plain ü", "zipped ü", "zstd ü", "d1", "d2", "e1", "f1", "", "g1", "g2", "g3"];
  expect(corpus.files.length).toBe(7);
  expect(corpus.bytesRead).toBe(0);
  for (let pass = 0; pass < 2; pass++) {
    expect(await textsOf(corpus)).toEqual(texts);
    expect(corpus.bytesRead).toBe(corpus.bytes);
  }
  const sizes = await Promise.all(corpus.files.map(async (path) => (await stat(path)).size));
  expect(corpus.bytes).toBe(sizes.reduce((a, b) => a + b));
});

test("files keep the order given, and name their documents", async () => {
  const paths = ["g.parquet", "d.jsonl", "a.txt"].map((name) => join(directory, name));
  const names: string[] = [];
  for await (const { name } of await readCorpus(paths, { field: "body" })) names.push(name);
  expect(names).toEqual([
    ...[0, 1, 2].map((row) => `${paths[0]}:${row}`),
    ...[1, 2].map((line) => `${paths[1]}:${line}`),
    paths[2],
  ]);
});

test("what is missing, unknown or without texts is refused by its path", async () => {
  const at = (name: string) => join(directory, name);
  await expect(readCorpus([])).rejects.toThrow("no files; give .txt");
  await expect(readCorpus([at("none.txt")])).rejects.toThrow("none.txt: no such file");
  await expect(readCorpus([at("h.csv")])).rejects.toThrow("h.csv: not known as text; give .txt");
  await expect(readCorpus([at("sub.txt")])).rejects.toThrow("the directory has no file");
  await expect(textsOf(await readCorpus([at("g.parquet")]))).rejects.toThrow(
    'g.parquet has no column "text"; it has other, body',
  );
  await expect(textsOf(await readCorpus([at("d.jsonl")]))).rejects.toThrow(
    'd.jsonl: line 1 has no text under "text"',
  );
  await writeFile(at("bad.txt.gz"), gzipSync(Uint8Array.of(0x61, 0xff)));
  await expect(textsOf(await readCorpus([at("bad.txt.gz")]))).rejects.toThrow(
    "bad.txt.gz: not UTF-8 text: byte 0xff at offset 1",
  );
});

test("a link to nowhere is passed over where it is not known as text, and named where it is", async () => {
  const path = join(directory, "links");
  await mkdir(path);
  await writeFile(join(path, "a.txt"), "text");
  await symlink("/nowhere", join(path, "b.md"));
  expect((await readCorpus([path])).files).toEqual([join(path, "a.txt")]);
  await symlink("/nowhere", join(path, "c.txt"));
  await expect(readCorpus([path])).rejects.toThrow("c.txt: no such file or directory");
  await expect(readCorpus([join(path, "a.txt", "b")])).rejects.toThrow(
    "a part of the path is not a directory",
  );
});

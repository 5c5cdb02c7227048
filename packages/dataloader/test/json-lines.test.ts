import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Document, encodeJsonLines, readJsonLines } from "@trireme/dataloader";
import { readJsonLinesDocuments } from "@trireme/dataloader/node";
import { zstdCompress } from "@trireme/dataloader/zstd";

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}

let directory = "";
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "trireme-jsonl-"));
});
afterAll(async () => {
  await rm(directory, { recursive: true });
});

test("values come back however the bytes are cut", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.jsonValue(), { maxLength: 8 }),
      fc.array(fc.nat(300)),
      async (values, cuts) => {
        const whole = encodeJsonLines(values);
        const ends = [
          ...cuts.map((cut) => cut % (whole.length + 1)).sort((a, b) => a - b),
          whole.length,
        ];
        const pieces = ends.map((end, i) => whole.subarray(i === 0 ? 0 : ends[i - 1], end));
        const lines = await collect(readJsonLines("x", pieces));
        expect(lines.map(({ line }) => line)).toEqual(values.map((_, i) => i + 1));
        // Through JSON, which has no minus zero.
        expect(lines.map(({ value }) => value)).toEqual(JSON.parse(JSON.stringify(values)));
      },
    ),
  );
});

test("empty lines, carriage returns and a last line without an end are fine", async () => {
  const text = new TextEncoder().encode('{"a":1}\r\n\n  \n"x"');
  expect(await collect(readJsonLines("x", [text]))).toEqual([
    { line: 1, value: { a: 1 } },
    { line: 4, value: "x" },
  ]);
  expect(await collect(readJsonLines("x", []))).toEqual([]);
});

test("a bad line is refused with its number and offset", async () => {
  const read = (...bytes: number[]) => collect(readJsonLines("x.jsonl", [Uint8Array.from(bytes)]));
  await expect(read(0x31, 0x0a, 0x7b, 0x0a)).rejects.toThrow(
    "x.jsonl at byte 2: line 2 is no JSON: {",
  );
  await expect(read(0x31, 0x0a, 0x22, 0xff, 0x22)).rejects.toThrow(
    "x.jsonl at byte 3: line 2 is not UTF-8",
  );
});

test("documents of a file, plain or compressed, are named by their line", async () => {
  const bytes = encodeJsonLines([{ text: "one" }, { text: "zwei ü" }]);
  const plain = join(directory, "a.jsonl");
  const zipped = join(directory, "a.jsonl.gz");
  await writeFile(plain, bytes);
  await writeFile(zipped, gzipSync(bytes));
  const zstd = join(directory, "a.jsonl.zst");
  await writeFile(zstd, await zstdCompress(bytes));
  for (const path of [plain, zipped, zstd]) {
    expect(await collect<Document>(readJsonLinesDocuments(path))).toEqual([
      { name: `${path}:1`, text: "one" },
      { name: `${path}:2`, text: "zwei ü" },
    ]);
  }
});

test("a missing file, a cut archive, a missing field are refused in a line", async () => {
  const zipped = join(directory, "cut.jsonl.gz");
  await writeFile(zipped, gzipSync(encodeJsonLines([{ text: "x".repeat(1000) }])).subarray(0, 25));
  const plain = join(directory, "b.jsonl");
  await writeFile(plain, encodeJsonLines([{ txt: "x" }]));
  const read = (path: string, field?: string) => collect(readJsonLinesDocuments(path, field));
  await expect(read(join(directory, "none.jsonl"))).rejects.toThrow("none.jsonl: no such file");
  await expect(read(join(directory, "none.jsonl.gz"))).rejects.toThrow(
    "none.jsonl.gz: no such file",
  );
  await expect(read(zipped)).rejects.toThrow("cut.jsonl.gz: not gzip, or cut short");
  await expect(read(plain)).rejects.toThrow('b.jsonl: line 1 has no text under "text"');
  await expect(read(plain, "txt")).resolves.toHaveLength(1);
  const damaged = join(directory, "b.jsonl.zst");
  await writeFile(damaged, "no zstd at all");
  await expect(read(damaged)).rejects.toThrow("b.jsonl.zst at byte 0: no zstd");
  await expect(read(join(directory, "none.jsonl.zst"))).rejects.toThrow(
    "none.jsonl.zst: no such file",
  );
  await expect(read(directory)).rejects.toThrow("is a directory");
});

test("compressed files far larger than a piece are read whole, and may be left early", async () => {
  const bytes = encodeJsonLines(Array.from({ length: 30_000 }, (_, i) => ({ text: `line ${i}` })));
  const paths = [join(directory, "large.jsonl.gz"), join(directory, "large.jsonl.zst")];
  await writeFile(paths[0]!, gzipSync(bytes));
  await writeFile(paths[1]!, await zstdCompress(bytes));
  for (const path of paths) {
    let taken = 0;
    const documents = await collect(readJsonLinesDocuments(path, "text", (n) => (taken += n)));
    expect(documents.length).toBe(30_000);
    expect(documents.at(-1)).toEqual({ name: `${path}:30000`, text: "line 29999" });
    expect(taken).toBe((await stat(path)).size);
    for await (const { text } of readJsonLinesDocuments(path)) if (text === "line 3") break;
  }
});

test("what JSON does not have is refused with its place, not written as a word", () => {
  expect(() => encodeJsonLines([1, undefined])).toThrow(
    "value 1 of JSON Lines: undefined is no value of JSON",
  );
  expect(() => encodeJsonLines([() => 1])).toThrow("value 0 of JSON Lines: function is no value");
  expect(() => encodeJsonLines([1n])).toThrow("value 0 of JSON Lines: ");
});

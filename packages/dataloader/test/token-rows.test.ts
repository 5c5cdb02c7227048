import { mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { memoryReader, tokenDataset } from "@trireme/dataloader";
import { openMegatronFiles, writeMegatronFiles, writeTokenRows } from "@trireme/dataloader/node";
import { encodeParquet, openParquet, parquetTokens } from "@trireme/dataloader/parquet";

let directory = "";
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "trireme-rows-"));
});
afterAll(async () => {
  await rm(directory, { recursive: true });
});

const lists = Array.from({ length: 300 }, (_, i) =>
  Array.from({ length: (i * 37) % 200 }, (__, k) => (i * 7919 + k) % 50_000),
);
async function* rowsOf(bytes: Uint8Array): AsyncGenerator<Int32Array> {
  const file = await openParquet(memoryReader("x.parquet", bytes));
  for await (const { tokens } of parquetTokens(file)) yield tokens;
}

test("a tokenised Parquet file becomes a source that is read anywhere", async () => {
  const prefix = join(directory, "x");
  const bytes = await encodeParquet({ input_ids: lists }, { rowGroup: 64 });
  const report = await writeTokenRows(prefix, rowsOf(bytes), 50_000);
  const all = lists.flat();
  expect(report).toEqual({ documents: 300, tokens: all.length, bytes: 2 * all.length });
  const files = await openMegatronFiles(prefix);
  expect([...files.index.lengths]).toEqual(lists.map((list) => list.length));
  const into = new Int32Array(500);
  files.source.read(7000, into);
  expect([...into]).toEqual(all.slice(7000, 7500));
  files.close();

  // The bytes are those of the same documents written from memory.
  let end = 0;
  const ends = Float64Array.from(lists, (list) => (end += list.length));
  const memory = join(directory, "memory");
  await writeMegatronFiles(memory, tokenDataset(Int32Array.from(all), ends, 50_000));
  for (const file of ["bin", "idx"])
    expect(await readFile(`${prefix}.${file}`)).toEqual(await readFile(`${memory}.${file}`));
});

test("an id outside the vocabulary is refused by its row, and leaves no file", async () => {
  const prefix = join(directory, "bad");
  await expect(
    writeTokenRows(
      prefix,
      [
        [1, 2],
        [3, 100],
      ],
      100,
    ),
  ).rejects.toThrow("token 100 at 1 of row 1 is outside the vocabulary: ids are 0..99");
  await expect(writeTokenRows(prefix, [[0.5]], 100)).rejects.toThrow("token 0.5 at 0 of row 0");
  expect((await readdir(directory)).filter((name) => name.startsWith("bad"))).toEqual([]);
  await expect(writeTokenRows(prefix, [], 0)).rejects.toThrow("vocabulary 0");
  await expect(writeTokenRows(join(directory, "no/x"), [], 5)).rejects.toThrow(
    "does its directory",
  );
  expect(await writeTokenRows(prefix, [], 5)).toEqual({ documents: 0, tokens: 0, bytes: 0 });
});

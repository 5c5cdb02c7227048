import { readFile } from "node:fs/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import { type ByteReader, FormatError, memoryReader } from "@trireme/dataloader";
import {
  encodeParquet,
  openParquet,
  parquetDocuments,
  parquetTokens,
} from "@trireme/dataloader/parquet";

const vectors: Readonly<Record<string, string>> = JSON.parse(
  await readFile(new URL("vectors/parquet.json", import.meta.url), "utf8"),
);
const bytesOf = (name: string): Uint8Array => new Uint8Array(Buffer.from(vectors[name]!, "base64"));

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const list: T[] = [];
  for await (const item of items) list.push(item);
  return list;
}
const texts = Array.from({ length: 3 }, () => [
  "héllo",
  "",
  "二つ目\nline",
  "x".repeat(300),
]).flat();
const ids = Array.from({ length: 3 }, () => [
  [1, 2, 3],
  [],
  [2 ** 31 - 1],
  Array<number>(70).fill(0),
]).flat();

test.each(Object.keys(vectors).filter((name) => name !== "bad"))(
  "texts and token lists that Arrow wrote are read: %s",
  async (name) => {
    const file = await openParquet(memoryReader("x.parquet", bytesOf(name)));
    expect(file.rows).toBe(12);
    expect([...file.groups]).toEqual([0, 5, 10, 12]);
    expect(file.columns).toEqual([
      { name: "text", type: "BYTE_ARRAY" },
      { name: "input_ids", type: "GROUP" },
      { name: "n", type: "INT32" },
    ]);
    const documents = await collect(parquetDocuments(file));
    expect(documents).toEqual(texts.map((text, row) => ({ name: `x.parquet:${row}`, text })));
    const tokens = await collect(parquetTokens(file));
    expect(tokens).toEqual(ids.map((list, row) => ({ row, tokens: Int32Array.from(list) })));
    expect(await file.read("n", 2)).toEqual([10, 11]);
  },
);

test("what is written is read, in row groups of any size", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.tuple(fc.string({ unit: "grapheme" }), fc.array(fc.nat(2 ** 31 - 1), { maxLength: 6 })),
      ),
      fc.integer({ min: 1, max: 8 }),
      fc.constantFrom("none" as const, "snappy" as const),
      async (rows, rowGroup, compression) => {
        const columns = {
          text: rows.map(([text]) => text),
          input_ids: rows.map(([, list]) => list),
        };
        if (rows.length === 0) return;
        const bytes = await encodeParquet(columns, { rowGroup, compression });
        const file = await openParquet(memoryReader("x", bytes));
        expect(file.groups.length - 1).toBe(Math.ceil(rows.length / rowGroup));
        expect((await collect(parquetDocuments(file))).map(({ text }) => text)).toEqual(
          columns.text,
        );
        expect((await collect(parquetTokens(file))).map(({ tokens }) => [...tokens])).toEqual(
          columns.input_ids,
        );
      },
    ),
    { numRuns: 50 },
  );
});

test("only the footer and the column asked for are read", async () => {
  const text = Array.from({ length: 4000 }, (_, i) => `${i} `.repeat(50));
  const other = text.map((_, i) =>
    Array.from({ length: 40 }, (__, k) => (i * 7919 + k * 104_729) % 2 ** 30),
  );
  const bytes = await encodeParquet({ other, text }, { rowGroup: 500, compression: "none" });
  let taken = 0;
  const reader: ByteReader = {
    name: "x",
    size: bytes.length,
    read(offset, into) {
      taken += into.length;
      into.set(bytes.subarray(offset, offset + into.length));
    },
  };
  const file = await openParquet(reader);
  const before = taken;
  await file.read("text", 3);
  // An eighth of the column, and of the file less than that.
  expect(taken - before).toBeLessThan(bytes.length / 8);
});

test("damage is refused with file, byte and reason", async () => {
  const good = bytesOf("snappy-v1");
  const open = (bytes: Uint8Array) => openParquet(memoryReader("x.parquet", bytes));
  await expect(open(good.subarray(0, 11))).rejects.toThrow("11 bytes; a Parquet file has 12");
  await expect(open(good.subarray(0, good.length - 1))).rejects.toThrow(
    "it is another format or cut",
  );
  await expect(open(new TextEncoder().encode('{"text": "json lines"}'))).rejects.toThrow(
    'x.parquet at byte 0: "{\\"te"; a Parquet file starts and ends with "PAR1"',
  );
  const long = good.slice();
  new DataView(long.buffer).setUint32(long.length - 8, 1e6, true);
  await expect(open(long)).rejects.toThrow(`at byte ${good.length - 8}: a footer of 1000000 bytes`);
  // Every data byte that is changed gives other values or an error, never a crash of another kind.
  for (let at = 4; at < 400; at += 7) {
    const changed = good.slice();
    changed[at]! ^= 0xff;
    const file = await open(changed);
    await collect(parquetDocuments(file)).catch((error: unknown) => {
      expect(error).toBeInstanceOf(FormatError);
    });
  }
});

test("a row without a text, an id out of range and an unknown column are refused by place", async () => {
  const file = await openParquet(memoryReader("x.parquet", bytesOf("bad")));
  await expect(collect(parquetDocuments(file))).rejects.toThrow(
    'x.parquet: row 1: "text" is null; a text is needed',
  );
  await expect(collect(parquetTokens(file, "ids"))).rejects.toThrow(
    'row 0: "ids" has -1 at 1; ids are 0..2^31-1',
  );
  await expect(collect(parquetTokens(file, "text"))).rejects.toThrow("is no list of integers");
  await expect(file.read("texts", 0)).rejects.toThrow('no column "texts"; did you mean "text"?');
  await expect(file.read("text", 1)).rejects.toThrow("row group 1 is outside 0..0");
  await expect(encodeParquet({})).rejects.toThrow("needs a column");
  await expect(encodeParquet({ a: ["x"], b: [] })).rejects.toThrow(
    "column b has 0 rows, column a has 1",
  );
});

test("row groups without rows, which would be written for ever, and columns of two kinds are refused", async () => {
  for (const rowGroup of [0, -1, NaN, 0.5]) {
    await expect(encodeParquet({ text: ["a"] }, { rowGroup })).rejects.toThrow(
      `row groups of ${rowGroup} rows`,
    );
  }
  const mixed: unknown = { text: ["a", 3] };
  await expect(encodeParquet(mixed as Record<string, string[]>)).rejects.toThrow(
    "row 1 of column text has number; the column holds texts",
  );
  await expect(encodeParquet({ ids: [[1], [2, 2 ** 31]] })).rejects.toThrow(
    "row 1 of column ids has 2147483648 at 1; the column holds lists of ids in 0..2^31-1",
  );
});

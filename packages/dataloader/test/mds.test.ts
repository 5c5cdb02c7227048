import { createHash } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  type MdsSample,
  type MdsShardInfo,
  decodeMdsIndex,
  decodeMdsShard,
  encodeMdsIndex,
  encodeMdsSample,
  encodeMdsShard,
  mdsColumns,
} from "@trireme/dataloader";
import { openMdsDirectory, writeMdsDirectory } from "@trireme/dataloader/node";

type Files = Readonly<Record<string, string>>;
const vectors: Readonly<Record<"plain" | "columns" | "gzip", Files>> = JSON.parse(
  await readFile(new URL("vectors/mds.json", import.meta.url), "utf8"),
);
const bytesOf = (files: Files, name: string): Buffer => Buffer.from(files[name]!, "base64");
const textOf = (files: Files, name: string): string => bytesOf(files, name).toString();

let directory = "";
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "trireme-mds-"));
});
afterAll(async () => {
  await rm(directory, { recursive: true });
});

/** The samples from which the reference wrote the vectors of every encoding. */
const columns = {
  text: "str",
  tokens: "ndarray:uint16",
  label: "int32",
  id: "int",
  meta: "json",
  raw: "bytes",
  fixed: "ndarray:float32:2,2",
  any: "ndarray",
  n: "str_int",
  x: "float64",
};
const samples = [0, 1, 2].map((k): MdsSample => ({
  text: "héllo".repeat(k),
  tokens: {
    type: "uint16",
    shape: [1 + 300 * k],
    data: Uint16Array.from({ length: 1 + 300 * k }, (_, i) => i),
  },
  label: k === 0 ? 0 : -k,
  id: 2 ** 40 + k,
  meta: { k, a: [1, null, "é"] },
  raw: Uint8Array.from({ length: k }, (_, i) => i),
  fixed: { type: "float32", shape: [2, 2], data: new Float32Array(4).fill(k / 2) },
  any: {
    type: "int64",
    shape: [2, 3],
    data: BigInt64Array.from([0, 1, 2, 3, 4, 5], (i) => BigInt(i + k)),
  },
  n: 10n ** 20n + BigInt(k),
  x: 0.1 * k,
}));
const plain = ["a", "bc", ""].map((text, id): MdsSample => ({ text, id }));

test("shards are byte for byte what the reference writes", () => {
  const none = { sizeLimit: 2 ** 26, compression: null, hashes: [] };
  const two = mdsColumns({ text: "str", id: "int" });
  const shard = encodeMdsShard(
    two,
    none,
    plain.map((sample) => encodeMdsSample(two, sample)),
  );
  expect(Buffer.from(shard).toString("hex")).toBe(
    bytesOf(vectors.plain, "shard.00000.mds").toString("hex"),
  );

  const many = mdsColumns(columns);
  const hashed = { ...none, hashes: ["sha1", "sha256"] };
  const all = encodeMdsShard(
    many,
    hashed,
    samples.map((sample) => encodeMdsSample(many, sample)),
  );
  expect(Buffer.from(all).toString("hex")).toBe(
    bytesOf(vectors.columns, "shard.00000.mds").toString("hex"),
  );
});

test("an index is byte for byte what the reference writes, and says what it said", () => {
  for (const files of Object.values(vectors)) {
    const text = textOf(files, "index.json");
    expect(encodeMdsIndex(decodeMdsIndex("index.json", text))).toBe(text);
  }
});

test("samples of every encoding come back as they were", () => {
  const [info] = decodeMdsIndex("index.json", textOf(vectors.columns, "index.json"));
  const shard = decodeMdsShard(
    "shard",
    new Uint8Array(bytesOf(vectors.columns, "shard.00000.mds")),
    info!.columns,
  );
  expect([0, 1, 2].map((i) => shard.sample(i))).toEqual(samples);
});

test("a dataset that the reference wrote is opened, compressed or not", async () => {
  for (const [name, files] of Object.entries(vectors)) {
    const folder = join(directory, `reference-${name}`);
    await writeMdsDirectory(folder, [], { columns });
    for (const [file, text] of Object.entries(files)) {
      await writeFile(join(folder, file), Buffer.from(text, "base64"));
    }
    const dataset = await openMdsDirectory(folder);
    for (let i = 0; i < dataset.shards.length; i++) {
      expect((await dataset.shard(i)).length).toBe(dataset.shards[i]!.samples);
    }
  }
  const packed = await openMdsDirectory(join(directory, "reference-gzip"));
  expect([packed.shards.length, packed.length]).toEqual([2, 4]);
  expect((await packed.shard(1)).sample(1)).toEqual({ text: "word ".repeat(40) });
});

test("a dataset is written as the reference writes it: shards, sizes, hashes and index", async () => {
  const folder = join(directory, "ours");
  const words = Array.from({ length: 4 }, () => ({ text: "word ".repeat(40) }));
  const options = {
    columns: { text: "str" },
    compression: "gz:6",
    hashes: ["sha1"],
    sizeLimit: 700,
  };
  const written = await writeMdsDirectory(folder, words, options);
  const theirs = decodeMdsIndex("index.json", textOf(vectors.gzip, "index.json"));
  // Compressed bytes depend on the zlib at hand and a time stamp; all else is equal.
  const apart = ({ samples: count, columns: c, options: o, raw }: MdsShardInfo) => ({
    count,
    c,
    o,
    raw,
  });
  expect(written.map(apart)).toEqual(theirs.map(apart));
  for (const { raw, zip } of written) {
    const shard = gunzipSync(await readFile(join(folder, zip!.basename)));
    expect(createHash("sha1").update(shard).digest("hex")).toBe(raw.hashes["sha1"]);
  }
  const dataset = await openMdsDirectory(folder);
  expect((await dataset.shard(0)).sample(0)).toEqual(words[0]);
});

test("shards are compressed and read back in every way that is written", async () => {
  const words = Array.from({ length: 4 }, (_, i) => ({ text: `word ${i} `.repeat(200) }));
  for (const compression of ["gz", "gz:1", "br", "br:4", "zstd", "zstd:19"]) {
    const folder = join(directory, compression.replace(":", "-"));
    const options = { columns: { text: "str" }, sizeLimit: 3500, hashes: ["sha256"], compression };
    const written = await writeMdsDirectory(folder, words, options);
    expect(written.length).toBe(2);
    const dataset = await openMdsDirectory(folder);
    const [extension] = compression.split(":");
    dataset.shards.forEach(({ raw, zip }, i) => {
      expect(zip?.basename).toBe(`shard.0000${i}.mds.${extension}`);
      expect(zip!.bytes).toBeLessThan(raw.bytes / 5);
    });
    const read = await Promise.all([0, 1].map((i) => dataset.shard(i)));
    expect(read.flatMap((shard) => [shard.sample(0), shard.sample(1)])).toEqual(words);
  }
  const write = (compression: string) =>
    writeMdsDirectory(join(directory, "x"), [], { columns: { text: "str" }, compression });
  await expect(write("bz2")).rejects.toThrow("bz2 is not written here; use gz, br or zstd");
  await expect(write("zstd:23")).rejects.toThrow("zstd:23: the levels of zstd are 1 to 22");
  await expect(write("gz:high")).rejects.toThrow("the levels of gz are 0 to 9");
});

test("a shard that was cut, changed or mislabelled is refused with its place", () => {
  const bytes = new Uint8Array(bytesOf(vectors.plain, "shard.00000.mds"));
  const [info] = decodeMdsIndex("index.json", textOf(vectors.plain, "index.json"));
  const open = (shard: Uint8Array) => () => {
    const opened = decodeMdsShard("s.mds", shard, info!.columns);
    for (let i = 0; i < opened.length; i++) opened.sample(i);
  };
  const change = (offset: number, value: number) => {
    const copy = bytes.slice();
    copy[offset] = value;
    return copy;
  };
  expect(open(bytes)).not.toThrow();
  for (let length = 0; length < bytes.length; length++)
    expect(open(bytes.subarray(0, length))).toThrow("s.mds");
  expect(open(change(0, 200))).toThrow("s.mds at byte 0: 200 samples need 808 bytes of offsets");
  expect(open(change(8, 1))).toThrow("s.mds at byte 8: offset 1 is 1; it must lie in 205..244");
  // The size of the first text: one more reaches past its sample, one less leaves a byte.
  expect(open(change(205, 2))).toThrow(
    "column text of 2 bytes reaches past its sample, which ends at 218",
  );
  expect(open(change(205, 0))).toThrow("the columns end here, their sample ends at 218");
  expect(open(change(217, 0xff))).toThrow("s.mds at byte 217: column text: not UTF-8");
});

test("what the index and the files disagree on is refused", async () => {
  const folder = join(directory, "changed");
  await writeMdsDirectory(folder, plain, {
    columns: { text: "str", id: "int" },
    hashes: ["sha256"],
  });
  const path = join(folder, "shard.00000.mds");
  const bytes = await readFile(path);
  const dataset = await openMdsDirectory(folder);
  bytes[bytes.length - 1]! ^= 1;
  await writeFile(path, bytes);
  await expect(dataset.shard(0)).rejects.toThrow("sha256 is");
  await writeFile(path, bytes.subarray(1));
  await expect(dataset.shard(0)).rejects.toThrow(
    `${bytes.length - 1} bytes; the index says ${bytes.length}`,
  );
  await rm(path);
  await expect(dataset.shard(0)).rejects.toThrow("no such file");
  await expect(dataset.shard(1)).rejects.toThrow("shard 1 is outside 0..0");
  await expect(openMdsDirectory(join(directory, "none"))).rejects.toThrow(
    "an MDS dataset has an index.json",
  );
});

test("an index that is none is refused with the path of what is wrong", () => {
  const [info] = decodeMdsIndex("i", textOf(vectors.plain, "index.json"));
  const change = (from: string, to: string) => () =>
    decodeMdsIndex("i", encodeMdsIndex([info!]).replaceAll(from, to));
  expect(() => decodeMdsIndex("i", "{")).toThrow("i: not JSON");
  expect(change('"version": 2', '"version": 3')).toThrow("i: version is 3; only 2 is known");
  expect(change('"mds"', '"csv"')).toThrow('shards[0].format is "csv"; only "mds" is known');
  expect(change('"samples": 3', '"samples": -3')).toThrow("shards[0].samples is -3");
  expect(change("shard.00000.mds", "../secret")).toThrow(
    'shards[0].raw_data.basename "../secret" is no plain file name',
  );
  expect(change("[8, null]", "[8]")).toThrow("2 column names, 2 encodings and 1 sizes");
});

test("values that a column cannot hold are refused with the column", () => {
  const encode = (encoding: string, value: MdsSample[string]) => () =>
    encodeMdsSample(mdsColumns({ c: encoding }), { c: value });
  expect(encode("int32", 2 ** 31)).toThrow(
    "column c: 2147483648 is no value for a column of encoding int32",
  );
  expect(encode("uint8", -1)).toThrow("column c: -1 is no value");
  expect(encode("int", 1.5)).toThrow("column c: 1.5 is no value");
  expect(encode("uint64", 2n ** 64n - 1n)).not.toThrow();
  expect(encode("uint64", 2n ** 64n)).toThrow("encoding uint64");
  expect(encode("str", 7)).toThrow("encoding str");
  expect(encode("ndarray:int32", { type: "uint8", shape: [1], data: Uint8Array.of(1) })).toThrow(
    "the column holds int32",
  );
  expect(encode("ndarray", { type: "uint8", shape: [2], data: Uint8Array.of(1) })).toThrow(
    "it has 1 elements",
  );
  expect(() => mdsColumns({ c: "pkl" })).toThrow("unpickling runs the code");
  expect(() => mdsColumns({ c: "strr" })).toThrow("did you mean str?");
  expect(() => encodeMdsSample(mdsColumns({ c: "str" }), {})).toThrow('no column "c"');
});

test("an encoding is known by its own name, not by what every object has", () => {
  for (const name of ["constructor", "toString", "__proto__"])
    expect(() => mdsColumns({ c: name })).toThrow(`column encoding "${name}" is not known`);
});

test("numbers as text are read as Python writes them, and nothing else is", () => {
  const shardOf = (text: string) => {
    const only = mdsColumns({ c: "str" });
    const options = { sizeLimit: null, compression: null, hashes: [] };
    return encodeMdsShard(only, options, [encodeMdsSample(only, { c: text })]);
  };
  const read = (encoding: string, text: string) =>
    decodeMdsShard("s", shardOf(text), mdsColumns({ c: encoding })).sample(0)["c"];
  const floats: [string, number][] = [
    ["inf", Infinity],
    ["-inf", -Infinity],
    ["nan", NaN],
    ["1e-07", 1e-7],
    ["3.0", 3],
  ];
  for (const [text, value] of floats) {
    expect(read("str_float", text)).toBe(value);
    expect(encodeMdsSample(mdsColumns({ c: "str_float" }), { c: value })).toEqual(
      encodeMdsSample(mdsColumns({ c: "str" }), { c: text }),
    );
  }
  for (const text of ["", "zz", "0x10", "1_0"]) {
    expect(() => read("str_float", text)).toThrow(`${JSON.stringify(text)} is not a number`);
    expect(() => read("str_int", text)).toThrow(`${JSON.stringify(text)} is not an integer`);
  }
  expect(read("str_int", "-12")).toBe(-12);
});

test("an index that gives a column another width than its encoding has is refused", () => {
  const only = mdsColumns({ a: "int64" });
  const options = { sizeLimit: null, compression: null, hashes: [] };
  const shard = encodeMdsShard(only, options, [encodeMdsSample(only, { a: 2 ** 40 })]);
  // Two halves of one number would be read as two numbers.
  const halves = { names: ["a", "b"], encodings: ["int64", "int64"], sizes: [4, 4] };
  expect(() => decodeMdsShard("s", shard, halves)).toThrow(
    "column a of encoding int64 has 8 bytes, but its columns say 4",
  );
});

test("a dataset is not written over another, whose shards would be read in its place", async () => {
  const path = join(directory, "taken");
  await writeMdsDirectory(path, [{ a: 1 }], { columns: { a: "int" } });
  await expect(
    writeMdsDirectory(path, [{ a: 2 }], { columns: { a: "int" }, compression: "gz" }),
  ).rejects.toThrow("taken: has files already; give an empty or a new directory");
  expect((await (await openMdsDirectory(path)).shard(0)).sample(0)).toEqual({ a: 1 });
});

test("limits and hashes that are none are refused before anything is written", async () => {
  const write = (options: object) =>
    writeMdsDirectory(join(directory, "odd"), [{ a: 1 }], { columns: { a: "int" }, ...options });
  for (const sizeLimit of [NaN, 0, -1])
    await expect(write({ sizeLimit })).rejects.toThrow(`sizeLimit ${sizeLimit}`);
  await expect(write({ hashes: ["md6"] })).rejects.toThrow("hash md6 is not known here");
});

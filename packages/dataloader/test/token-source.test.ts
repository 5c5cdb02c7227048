import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type ByteReader,
  type MegatronIndex,
  type TokenSource,
  type TokenType,
  concatenateSources,
  createLoader,
  datasetSource,
  decodeMegatronIndex,
  encodeLlmcShard,
  encodeMegatronIndex,
  llmcSource,
  megatronSource,
  memoryReader,
  tokenDataset,
} from "@trireme/dataloader";

const index = (type: TokenType, count: number): MegatronIndex => ({
  type,
  lengths: Int32Array.of(count),
  documents: Float64Array.of(0, 1),
});
const all = (source: TokenSource): number[] => {
  const into = new Int32Array(source.length);
  source.read(0, into);
  return [...into];
};
const dataset = (tokens: number[]) =>
  tokenDataset(Int32Array.from(tokens), Float64Array.of(tokens.length), 10_000);

test("every element type gives its ids", () => {
  const bytes: [TokenType, ArrayBufferView<ArrayBuffer>][] = [
    ["u8", Uint8Array.of(0, 7, 255)],
    ["i8", Int8Array.of(0, 7, 127)],
    ["i16", Int16Array.of(0, 7, 32_767)],
    ["u16", Uint16Array.of(0, 7, 65_535)],
    ["i32", Int32Array.of(0, 7, 2 ** 31 - 1)],
    ["i64", BigInt64Array.of(0n, 7n, 2n ** 31n - 1n)],
    ["f32", Float32Array.of(0, 7, 2 ** 24)],
    ["f64", Float64Array.of(0, 7, 2 ** 31 - 1)],
  ];
  for (const [type, values] of bytes) {
    const reader = memoryReader("x.bin", new Uint8Array(values.buffer));
    const ids = all(megatronSource(index(type, 3), reader));
    expect(ids.slice(0, 2)).toEqual([0, 7]);
    const last = new Map([
      ["u8", 255],
      ["i8", 127],
      ["i16", 32_767],
      ["u16", 65_535],
      ["f32", 2 ** 24],
    ]);
    expect(ids[2]).toBe(last.get(type) ?? 2 ** 31 - 1);
  }
});

test("a value that is no id is refused with its place", () => {
  const bad: [TokenType, ArrayBufferView<ArrayBuffer>, string][] = [
    ["i16", Int16Array.of(1, -1), "x.bin at byte 2: token 1 is no id"],
    ["i32", Int32Array.of(-5), "x.bin at byte 0: token 0 is no id"],
    ["i64", BigInt64Array.of(1n, 2n ** 31n), "x.bin at byte 8: token 1 is no id"],
    ["f32", Float32Array.of(0.5), "token 0 is no id"],
    ["f64", Float64Array.of(Number.NaN), "token 0 is no id"],
  ];
  for (const [type, values, reason] of bad) {
    const reader = memoryReader("x.bin", new Uint8Array(values.buffer));
    const source = megatronSource(index(type, 1), reader);
    expect(() => all(source)).toThrow(reason);
  }
});

test("a loader reads the same batches from a file as from memory", () => {
  const tokens = Array.from({ length: 500 }, (_, i) => (i * 7919) % 10_000);
  const type = "u16";
  const bytes = new Uint8Array(Uint16Array.from(tokens).buffer);
  const decoded = decodeMegatronIndex("x.idx", encodeMegatronIndex(index(type, 500)), bytes.length);
  const options = { sequence: 8, globalBatch: 6, dp: 2, microbatch: 1, seed: 4 };
  const file = createLoader({
    ...options,
    dataset: megatronSource(decoded, memoryReader("x.bin", bytes)),
  });
  const memory = createLoader({ ...options, dataset: dataset(tokens) });
  for (const step of [0, 5, 9, 10, 1_000_000]) expect(file.batch(step)).toEqual(memory.batch(step));
  // The two are known apart: what they hold was checked in different ways.
  expect(() => file.resume(memory.state(1))).toThrow("dataset");
});

test("an offset beyond 2^32 reaches the reader as it is", () => {
  const reads: [number, number][] = [];
  const reader: ByteReader = {
    name: "huge.bin",
    size: 2 ** 40,
    read: (offset, into) => void reads.push([offset, into.byteLength]),
  };
  const source = megatronSource(
    { type: "u16", lengths: new Int32Array(0), documents: Float64Array.of(0) },
    reader,
  );
  expect(source.length).toBe(2 ** 39);
  reads.length = 0;
  source.read(2 ** 38 + 1, new Int32Array(5));
  expect(reads).toEqual([[2 ** 39 + 2, 10]]);
});

test("sources laid end to end read like one, across every seam", () => {
  const parts = fc.array(fc.array(fc.nat(9999), { maxLength: 8 }), { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(parts, fc.nat(), fc.nat(), (lists, a, b) => {
      const whole = lists.flat();
      const source = concatenateSources(lists.map((tokens) => datasetSource(dataset(tokens))));
      expect(source.length).toBe(whole.length);
      const start = a % (whole.length + 1);
      const into = new Int32Array(b % (whole.length - start + 1));
      source.read(start, into);
      expect([...into]).toEqual(whole.slice(start, start + into.length));
    }),
  );
  expect(() => concatenateSources([])).toThrow("at least one");
});

test("a shard of llm.c has the header and the tokens that its writer gives", () => {
  // dev/data/data_common.py, write_datafile([5, 65535, 0]): 256 i32, then u16.
  const bytes = encodeLlmcShard([5, 65_535, 0]);
  const header = new Int32Array(256);
  header.set([20_240_520, 1, 3]);
  expect(Buffer.from(bytes).toString("hex")).toBe(
    Buffer.concat([new Uint8Array(header.buffer), Buffer.from("0500ffff0000", "hex")]).toString(
      "hex",
    ),
  );
  expect(all(llmcSource(memoryReader("a.bin", bytes)))).toEqual([5, 65_535, 0]);
  const llama = encodeLlmcShard([5, 128_000], "llama-3");
  expect([...new Int32Array(llama.buffer, 0, 3)]).toEqual([20_240_801, 7, 2]);
  expect(all(llmcSource(memoryReader("a.bin", llama)))).toEqual([5, 128_000]);
});

test("a shard that is not what it says is refused with the place", () => {
  const bytes = encodeLlmcShard([1, 2, 3]);
  const open = (shard: Uint8Array) => () => llmcSource(memoryReader("a.bin", shard));
  const change = (offset: number, value: number) => {
    const copy = bytes.slice();
    copy[offset] = value;
    return copy;
  };
  expect(open(bytes.subarray(0, 100))).toThrow("a.bin at byte 0: 1024 bytes are needed here");
  expect(open(change(0, 0))).toThrow("a.bin at byte 0: magic number");
  expect(open(change(4, 2))).toThrow("a.bin at byte 4: version 2; a gpt-2 shard has version 1");
  expect(open(change(8, 4))).toThrow("a.bin at byte 8: the header counts 4 tokens, the file has 3");
  expect(open(bytes.subarray(0, -1))).toThrow("no whole number of 2-byte elements");
  expect(() => encodeLlmcShard([65_536])).toThrow(
    "token 65536 at 0: ids of a gpt-2 shard are 0..65535",
  );
});

test("the fingerprint of a file changes with its size, its index and its sampled content", () => {
  const bytes = new Uint8Array(1 << 20);
  const print = (type: TokenType, count: number, data: Uint8Array) =>
    megatronSource(index(type, count), memoryReader("x", data)).fingerprint;
  const changed = bytes.slice();
  changed[changed.length - 1] = 1;
  const prints = [
    print("u16", 1 << 19, bytes),
    print("u16", 1 << 19, changed),
    print("i16", 1 << 19, bytes),
    print("u16", 1 << 18, bytes.subarray(0, 1 << 19)),
  ];
  expect(new Set(prints).size).toBe(4);
  expect(print("u16", 1 << 19, bytes.slice())).toBe(prints[0]);
});

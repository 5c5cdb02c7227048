import { expect, test } from "vitest";
import {
  type TensorInfo,
  checkShards,
  encodeShardIndex,
  parseShardIndex,
  planShards,
} from "@trireme/checkpoint";

const bytes = (name: string, size: number): TensorInfo => ({ name, dtype: "U8", shape: [size] });
const text = (s: string): Uint8Array => new TextEncoder().encode(s);

test("files are filled in order up to the size, and a tensor above it gets one of its own", () => {
  const tensors = [bytes("a", 4), bytes("b", 6), bytes("big", 11), bytes("c", 1), bytes("d", 10)];
  const { files, index, indexName } = planShards(tensors, { maximum: 10 });
  // What split_state_dict_into_shards_factory of huggingface_hub gives for these sizes: the file being
  // filled stays open across the large tensor.
  expect(files.map(({ name, tensors: list }) => [name, list.map((t) => t.name)])).toEqual([
    ["model-00001-of-00004.safetensors", ["big"]],
    ["model-00002-of-00004.safetensors", ["a", "b"]],
    ["model-00003-of-00004.safetensors", ["c"]],
    ["model-00004-of-00004.safetensors", ["d"]],
  ]);
  expect(indexName).toBe("model.safetensors.index.json");
  expect(index?.totalSize).toBe(32);
  expect(parseShardIndex(encodeShardIndex(index!))).toEqual({
    totalSize: 32,
    files: index!.files,
  });
});

test("the reference's own example: 6, 6, 2, 6, 2, 2 with room for 10", () => {
  const tensors = [6, 6, 2, 6, 2, 2].map((size, i) => bytes(String(i), size));
  const { files } = planShards(tensors, { maximum: 10 });
  expect(files.map(({ tensors: list }) => list.map(({ shape }) => shape[0]))).toEqual([
    [6],
    [6, 2],
    [6, 2, 2],
  ]);
});

test("what fits in one file needs no index", () => {
  expect(planShards([bytes("a", 4)])).toEqual({
    files: [{ name: "model.safetensors", tensors: [bytes("a", 4)] }],
    index: undefined,
    indexName: "model.safetensors.index.json",
  });
  expect(planShards([]).files).toEqual([{ name: "model.safetensors", tensors: [] }]);
  // 5 GB by default, with sizes beyond 2^32 counted exactly.
  const large = planShards([bytes("a", 4e9), bytes("b", 4e9), bytes("c", 2 ** 40)], { stem: "x" });
  expect(large.files.map(({ name }) => name)).toEqual([
    "x-00001-of-00003.safetensors",
    "x-00002-of-00003.safetensors",
    "x-00003-of-00003.safetensors",
  ]);
  expect(large.index?.totalSize).toBe(2 ** 40 + 8e9);
  expect(() => planShards([], { maximum: 0 })).toThrow("maximum 0");
  expect(() => planShards([], { stem: "../x" })).toThrow('file name "../x"');
});

test("an index has the bytes of Python's json with sorted keys", () => {
  const files = new Map([
    ["b.é", "model-00002-of-00002.safetensors"],
    ["a", "model-00001-of-00002.safetensors"],
  ]);
  expect(new TextDecoder().decode(encodeShardIndex({ totalSize: 12, files }))).toBe(
    `{
  "metadata": {
    "total_size": 12
  },
  "weight_map": {
    "a": "model-00001-of-00002.safetensors",
    "b.\\u00e9": "model-00002-of-00002.safetensors"
  }
}
`,
  );
});

test("indices of others are read, and those that lead outside or contradict are refused", () => {
  const parse = (json: string) => parseShardIndex(text(json));
  expect(
    parse('{"metadata":{"total_size":13476839424.0},"weight_map":{"a":"m.safetensors"}}'),
  ).toEqual({
    totalSize: 13_476_839_424,
    files: new Map([["a", "m.safetensors"]]),
  });
  expect(parse('{"weight_map":{}}')).toEqual({ totalSize: undefined, files: new Map() });
  expect(() => parse('{"weight_map":{"a":"../../etc/passwd"}}')).toThrow("file name");
  expect(() => parse('{"weight_map":{"a":"x","a":"y"}}')).toThrow('the key "a" comes twice');
  expect(() => parse('{"weight_map":{"a":1}}')).toThrow('tensor "a" has no file name');
  expect(() => parse("[]")).toThrow('no object "weight_map"');
  expect(() => parse("{")).toThrow("no strict JSON");
});

test("shards that do not have what the index says are refused", () => {
  const index = {
    totalSize: 5,
    files: new Map([
      ["a", "1.st"],
      ["b", "2.st"],
    ]),
  };
  const shards = (one: readonly TensorInfo[], two: readonly TensorInfo[]) =>
    new Map([
      ["1.st", one],
      ["2.st", two],
    ]);
  const [a, b] = [bytes("a", 1), bytes("b", 4)];
  expect(() => checkShards(index, shards([a], [b]))).not.toThrow();
  expect(() => checkShards(index, shards([a], []))).toThrow(
    'it has tensor "b" in 2.st, but 2.st does not have it',
  );
  expect(() => checkShards(index, new Map([["1.st", [a]]]))).toThrow("there is no 2.st");
  expect(() => checkShards(index, shards([a, b], [b]))).toThrow(
    '1.st has tensor "b", which the index has in 2.st',
  );
  expect(() => checkShards(index, shards([a, bytes("x", 1)], [b]))).toThrow("in no file");
});

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type Dtype,
  SafetensorsError,
  type SafetensorsErrorKind,
  type TensorEntry,
  decodeSafetensors,
  dtypeBits,
  dtypes,
  encodeSafetensors,
  findTensor,
  float32Values,
  int32Values,
  safetensorsHeader,
} from "@trireme/checkpoint";

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

/** A file with a header as given and `data` bytes behind it. */
function file(header: string | Uint8Array, data = 0, length?: bigint): Uint8Array {
  const json = typeof header === "string" ? new TextEncoder().encode(header) : header;
  const bytes = new Uint8Array(8 + json.length + data);
  new DataView(bytes.buffer).setBigUint64(0, length ?? BigInt(json.length), true);
  bytes.set(json, 8);
  return bytes;
}

function kindOf(run: () => unknown): SafetensorsErrorKind | undefined {
  try {
    run();
  } catch (error) {
    if (error instanceof SafetensorsError && !error.message.includes("\n")) return error.kind;
    throw error;
  }
  return undefined;
}

const kindOfFile = (...args: Parameters<typeof file>) =>
  kindOf(() => decodeSafetensors(file(...args)));

const tensor = (
  name: string,
  dtype: Dtype,
  shape: readonly number[],
  data: readonly number[],
): TensorEntry => ({
  name,
  dtype,
  shape,
  data: Uint8Array.from(data),
});

const entries = fc.uniqueArray(
  fc
    .tuple(
      fc.string({ unit: "grapheme" }),
      fc.constantFrom(...dtypes.filter((dtype) => dtypeBits(dtype) % 8 === 0)),
      fc.array(fc.nat(4), { maxLength: 3 }),
      fc.nat(255),
    )
    .map(([name, dtype, shape, fill]): TensorEntry => {
      const bytes = (shape.reduce((a, b) => a * b, 1) * dtypeBits(dtype)) / 8;
      return { name, dtype, shape, data: new Uint8Array(bytes).fill(fill) };
    })
    .filter(({ name }) => name !== "__metadata__"),
  { selector: ({ name }) => name },
);

const metadata = fc.dictionary(fc.string({ unit: "grapheme" }), fc.string({ unit: "grapheme" }));

test("decode inverts encode, and the bytes do not depend on the order of the tensors", () => {
  fc.assert(
    fc.property(entries, metadata, (tensors, texts) => {
      const bytes = encodeSafetensors(tensors, texts);
      const decoded = decodeSafetensors(bytes);
      expect({ ...decoded.metadata }).toEqual({ ...texts });
      expect(decoded.tensors.length).toBe(tensors.length);
      for (const wanted of tensors)
        expect(findTensor(decoded.tensors, wanted.name)).toEqual(wanted);
      const reversed = Object.fromEntries(Object.entries(texts).toReversed());
      expect(hex(encodeSafetensors(tensors.toReversed(), reversed))).toBe(hex(bytes));
    }),
  );
});

test("the data starts at a multiple of 8 and each tensor at a multiple of its own width", () => {
  fc.assert(
    fc.property(entries, metadata, (tensors, texts) => {
      for (const { dtype, data } of decodeSafetensors(encodeSafetensors(tensors, texts)).tensors) {
        expect(data.byteOffset % (dtypeBits(dtype) / 8)).toBe(0);
      }
      expect(safetensorsHeader(tensors, texts).header.byteLength % 8).toBe(0);
    }),
  );
});

test("the bytes are the reference writer's", () => {
  // The example of the reference's own test of its writer: one F32 tensor [1, 2, 3] of six elements.
  const values = Float32Array.of(0, 1, 2, 3, 4, 5);
  const data = new Uint8Array(values.buffer);
  const header = '{"attn.0":{"dtype":"F32","shape":[1,2,3],"data_offsets":[0,24]}}';
  const bytes = encodeSafetensors([{ name: "attn.0", dtype: "F32", shape: [1, 2, 3], data }]);
  expect(hex(bytes)).toBe(`4000000000000000${hex(new TextEncoder().encode(header))}${hex(data)}`);

  const two = encodeSafetensors(
    [tensor("b", "U8", [1], [7]), tensor("a", "U8", [2], [8, 9]), tensor("z", "F16", [], [1, 2])],
    { format: "pt" },
  );
  expect(new TextDecoder().decode(two.subarray(8, -5)).trimEnd()).toBe(
    '{"__metadata__":{"format":"pt"},"z":{"dtype":"F16","shape":[],"data_offsets":[0,2]},' +
      '"a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]},"b":{"dtype":"U8","shape":[1],"data_offsets":[4,5]}}',
  );
  expect([...two.subarray(-5)]).toEqual([1, 2, 8, 9, 7]);
});

test("scalars, empty tensors, no tensors and empty metadata are fine", () => {
  const tensors = [
    tensor("scalar", "U8", [], [3]),
    tensor("empty", "F32", [0], []),
    tensor("flat", "I64", [3, 0, 2], []),
  ];
  expect(decodeSafetensors(encodeSafetensors(tensors, {})).tensors.length).toBe(3);
  expect(decodeSafetensors(encodeSafetensors([]))).toEqual({ tensors: [], metadata: {} });
  expect(decodeSafetensors(file('{"__metadata__":{}}')).metadata).toEqual({});
});

test("any JSON white space may pad the header, a NUL may not", () => {
  const header = '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}';
  expect(decodeSafetensors(file(`${header} \t\r\n`, 1)).tensors.length).toBe(1);
  expect(kindOfFile(`${header}\0`, 1)).toBe("InvalidHeaderDeserialization");
});

test("names and texts keep every character, also those that JavaScript treats as its own", () => {
  const names = ["__proto__", "constructor", 'quo"te\\', "\u0001\n", "😀", "\uFFFF", ""];
  const texts = Object.fromEntries(names.map((name) => [name, name]));
  const decoded = decodeSafetensors(
    encodeSafetensors(
      names.map((name) => tensor(name, "U8", [1], [1])),
      texts,
    ),
  );
  // By code point, as UTF-8 sorts: U+FFFF before the emoji, which UTF-16 would put first.
  expect(decoded.tensors.map(({ name }) => name)).toEqual([
    "",
    "\u0001\n",
    "__proto__",
    "constructor",
    'quo"te\\',
    "\uFFFF",
    "😀",
  ]);
  expect(new Map(Object.entries(decoded.metadata))).toEqual(new Map(Object.entries(texts)));
});

test("each thing wrong with a file has its kind", () => {
  const one = (info: string, data = 0) => kindOfFile(`{"a":${info}}`, data);
  expect(kindOf(() => decodeSafetensors(new Uint8Array(7)))).toBe("HeaderTooSmall");
  expect(kindOf(() => decodeSafetensors(new Uint8Array(0)))).toBe("HeaderTooSmall");
  expect(kindOfFile("{}", 0, 100_000_001n)).toBe("HeaderTooLarge");
  expect(kindOfFile("{}", 0, 2n ** 64n - 1n)).toBe("HeaderTooLarge");
  expect(kindOfFile("{}", 0, 3n)).toBe("InvalidHeaderLength");
  expect(kindOfFile(Uint8Array.of(0x7b, 0xff, 0x7d))).toBe("InvalidHeader");
  expect(kindOfFile(" {}")).toBe("InvalidHeaderStart");
  expect(kindOfFile("")).toBe("InvalidHeaderStart");
  expect(kindOfFile("\uFEFF{}")).toBe("InvalidHeaderStart");
  for (const header of [
    "{",
    "{}}",
    '{"a":1}',
    '{"__metadata__":{"a":1}}',
    '{"__metadata__":[]}',
    '{"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}',
    '{"a":{"dtype":"U8","dtype":"U8","shape":[],"data_offsets":[0,1]}}',
    '{"\\u0061":{"dtype":"U8","shape":[],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[],"data_offsets":[0,1]}}',
    '{"a":{"dtype":"F33","shape":[],"data_offsets":[0,1]}}',
    '{"a":{"shape":[],"data_offsets":[0,1]}}',
    '{"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}}',
    '{"a":{"dtype":"U8","shape":[1.0],"data_offsets":[0,1]}}',
    '{"a":{"dtype":"U8","shape":[1e0],"data_offsets":[0,1]}}',
    '{"a":{"dtype":"U8","shape":1,"data_offsets":[0,1]}}',
    '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}}',
    '{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1,2]}}',
  ]) {
    expect([header, kindOfFile(header, 1)]).toEqual([header, "InvalidHeaderDeserialization"]);
  }
  expect(one('{"dtype":"U8","shape":[1],"data_offsets":[1,2]}', 2)).toBe("InvalidOffset");
  expect(one('{"dtype":"U8","shape":[0],"data_offsets":[0,-0]}')).toBe(
    "InvalidHeaderDeserialization",
  );
  expect(one('{"dtype":"U8","shape":[2],"data_offsets":[0,1]}', 1)).toBe("TensorInvalidInfo");
  expect(one('{"dtype":"U8","shape":[1],"data_offsets":[0,1]}', 0)).toBe(
    "MetadataIncompleteBuffer",
  );
  expect(one('{"dtype":"U8","shape":[1],"data_offsets":[0,1]}', 2)).toBe(
    "MetadataIncompleteBuffer",
  );
  expect(one('{"dtype":"U8","shape":[9007199254740993],"data_offsets":[0,1]}', 1)).toBe(
    "ValidationOverflow",
  );
  expect(one('{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}')).toBe(
    "ValidationOverflow",
  );
  expect(one('{"dtype":"F4","shape":[3],"data_offsets":[0,2]}', 2)).toBe("MisalignedSlice");
  expect(one('{"dtype":"F4","shape":[4],"data_offsets":[0,2]}', 2)).toBeUndefined();
});

const two = (a: string, b: string, data: number) =>
  kindOfFile(
    `{"a":{"dtype":"U8","shape":[2],"data_offsets":${a}},"b":{"dtype":"U8","shape":[2],"data_offsets":${b}}}`,
    data,
  );

test("two tensors on the same bytes, an overlap, a hole and a reversed range are refused", () => {
  expect(two("[0,2]", "[2,4]", 4)).toBeUndefined();
  expect(two("[2,4]", "[0,2]", 4)).toBeUndefined();
  expect(two("[0,2]", "[0,2]", 2)).toBe("InvalidOffset");
  expect(two("[0,2]", "[1,3]", 3)).toBe("InvalidOffset");
  expect(two("[0,2]", "[3,5]", 5)).toBe("InvalidOffset");
  expect(two("[0,2]", "[2,0]", 2)).toBe("InvalidOffset");
});

test("every truncation of a file is refused, and every change of a length is", () => {
  const bytes = encodeSafetensors([
    tensor("a", "I16", [2], [1, 2, 3, 4]),
    tensor("b", "U8", [1], [5]),
  ]);
  for (let length = 0; length < bytes.length; length++) {
    expect(kindOf(() => decodeSafetensors(bytes.subarray(0, length)))).toBeDefined();
  }
  const longer = new Uint8Array(bytes.length + 1);
  longer.set(bytes);
  expect(kindOf(() => decodeSafetensors(longer))).toBe("MetadataIncompleteBuffer");
});

test("arbitrary bytes are decoded or refused by kind, never worse", () => {
  const bytes = encodeSafetensors([tensor("a", "I16", [2], [1, 2, 3, 4])], { k: "v" });
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.nat(bytes.length - 1), fc.nat(255)), { maxLength: 4 }),
      (edits) => {
        const edited = bytes.slice();
        for (const [at, value] of edits) edited[at] = value;
        kindOf(() => decodeSafetensors(edited));
      },
    ),
    { numRuns: 2000 },
  );
  expect(kindOfFile(`{"a":${"[".repeat(100_000)}`)).toBe("InvalidHeaderDeserialization");
});

test("what cannot be written is refused by kind", () => {
  const encode = (...tensors: TensorEntry[]) => kindOf(() => encodeSafetensors(tensors));
  expect(encode(tensor("a", "F32", [2], [1, 2, 3, 4]))).toBe("InvalidTensorView");
  expect(encode(tensor("a", "U8", [1], [1]), tensor("a", "I8", [1], [1]))).toBe(
    "InvalidTensorView",
  );
  expect(encode(tensor("__metadata__", "U8", [1], [1]))).toBe("InvalidTensorView");
  expect(encode(tensor("a\uD800", "U8", [1], [1]))).toBe("InvalidHeader");
  expect(encode(tensor("a", "U8", [1.5], [1]))).toBe("ValidationOverflow");
  expect(encode(tensor("a", "F6_E2M3", [1], [1]))).toBe("MisalignedSlice");
  expect(encode(tensor("a", "F6_E2M3", [4], [1, 2, 3]))).toBeUndefined();
  expect(kindOf(() => encodeSafetensors([], { a: "x".repeat(99_999_990) }))).toBe("HeaderTooLarge");
});

test("a tensor is found by name or the nearest is named", () => {
  const tensors = [tensor("model.weight", "U8", [1], [1])];
  expect(() => findTensor(tensors, "model.wieght")).toThrow('did you mean "model.weight"?');
  expect(kindOf(() => findTensor(tensors, "x"))).toBe("TensorNotFound");
});

test("values are a view where aligned and a right copy where not", () => {
  const bytes = new Uint8Array(20);
  for (const offset of [0, 1, 2, 3, 4]) {
    const data = bytes.subarray(offset, offset + 8);
    new Uint8Array(bytes.buffer, offset, 8).set(new Uint8Array(Float32Array.of(1.5, -2).buffer));
    const values = float32Values({ name: "a", dtype: "F32", shape: [2], data });
    expect([...values]).toEqual([1.5, -2]);
    expect(values.buffer === bytes.buffer).toBe(offset % 4 === 0);
  }
  expect([...int32Values(tensor("a", "I32", [1], [255, 255, 255, 255]))]).toEqual([-1]);
  expect(kindOf(() => float32Values(tensor("a", "I32", [1], [0, 0, 0, 0])))).toBe(
    "InvalidTensorView",
  );
});

test("metadata of many megabytes is read, escapes and all", () => {
  const long = 'a"\\\n€'.repeat(2_000_000);
  const read = decodeSafetensors(encodeSafetensors([], { long })).metadata["long"];
  // Not by toBe, which would print both.
  expect(read === long).toBe(true);
});

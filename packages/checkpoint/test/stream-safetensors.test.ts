import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type ByteSource,
  type TensorEntry,
  encodeSafetensors,
  layoutSafetensors,
  openSafetensors,
  readTensorRegion,
  regionRuns,
  streamSafetensors,
  tensorChunks,
} from "@trireme/checkpoint";

async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const list: Uint8Array[] = [];
  for await (const chunk of chunks) list.push(chunk.slice());
  return new Uint8Array(Buffer.concat(list));
}

function memory(bytes: Uint8Array): ByteSource & { readonly reads: [number, number][] } {
  const reads: [number, number][] = [];
  return {
    size: bytes.length,
    reads,
    read: (offset, length) => {
      reads.push([offset, length]);
      return bytes.subarray(offset, offset + length);
    },
  };
}

const counting = (length: number): Uint8Array => Uint8Array.from({ length }, (_, i) => i % 251);

const tensors: readonly TensorEntry[] = [
  { name: "a", dtype: "F32", shape: [4, 5], data: counting(80) },
  { name: "b", dtype: "BF16", shape: [3], data: counting(6) },
  { name: "none", dtype: "U8", shape: [0], data: new Uint8Array(0) },
  { name: "c", dtype: "U8", shape: [], data: counting(1) },
];
const dataOf = new Map(tensors.map(({ name, data }) => [name, data]));

test("a stream has the bytes of the encoded file, whatever the length of its chunks", async () => {
  for (const chunk of [1, 7, 64, 1000]) {
    const stream = streamSafetensors(
      tensors,
      ({ name }, offset, length) => dataOf.get(name)!.subarray(offset, offset + length),
      { metadata: { step: "3" }, chunk },
    );
    expect(await collect(stream)).toEqual(encodeSafetensors(tensors, { step: "3" }));
  }
});

test("a file is opened by its header alone, and read tensor by tensor in chunks", async () => {
  const source = memory(encodeSafetensors(tensors, { step: "3" }));
  const file = await openSafetensors(source);
  expect(file.metadata).toEqual({ step: "3" });
  const read = source.reads.reduce((sum, [, length]) => sum + length, 0);
  expect(read).toBe(8 + file.tensors[0]!.offset);
  for (const { name, data } of tensors) {
    expect(await collect(tensorChunks(file, name, 9))).toEqual(data);
  }
  await expect(collect(tensorChunks(file, "aa"))).rejects.toThrow('no tensor "aa" among 4');
});

test("a region comes as it would from the whole tensor, without reading all of it", async () => {
  const shape = [6, 50, 40];
  const data = counting(6 * 50 * 40 * 2);
  const source = memory(encodeSafetensors([{ name: "t", dtype: "F16", shape, data }]));
  const file = await openSafetensors(source);
  const range = (size: number) =>
    fc
      .tuple(fc.nat(size), fc.nat(size))
      .map(([a, b]) => [Math.min(a, b), Math.abs(a - b)] as const);
  await fc.assert(
    fc.asyncProperty(range(6), range(50), range(40), async (x, y, z) => {
      const region = { start: [x[0], y[0], z[0]], shape: [x[1], y[1], z[1]] };
      const wanted: number[] = [];
      for (let i = x[0]; i < x[0] + x[1]; i++)
        for (let j = y[0]; j < y[0] + y[1]; j++)
          for (let k = z[0]; k < z[0] + z[1]; k++)
            for (let byte = 0; byte < 2; byte++)
              wanted.push(data[((i * 50 + j) * 40 + k) * 2 + byte]!);
      source.reads.length = 0;
      const bytes = await readTensorRegion(file, "t", region);
      expect(Buffer.compare(bytes, Uint8Array.from(wanted))).toBe(0);
      const runs = [...regionRuns(shape, region, 2)];
      const read = source.reads.reduce((sum, [, length]) => sum + length, 0);
      // Never more than the runs and 4 KiB between two of them.
      expect(read).toBeLessThanOrEqual(wanted.length + 4096 * runs.length);
      expect(source.reads.length).toBeLessThanOrEqual(runs.length);
    }),
  );
  const outside = { start: [0, 0, 30], shape: [1, 1, 20] };
  await expect(readTensorRegion(file, "t", outside)).rejects.toThrow(
    'region [0:1, 0:1, 30:50] is not inside tensor "t" of [6, 50, 40]',
  );
});

/** A file of which only the header is in memory; the data are a function of the place. */
function virtual(elements: number): ByteSource {
  const layout = layoutSafetensors([
    { name: "large", dtype: "U16", shape: [elements / 4, 4] },
    { name: "behind", dtype: "U8", shape: [3] },
  ]);
  const start = layout.header.length;
  return {
    size: layout.size,
    read: (offset, length) => {
      expect(length).toBeLessThanOrEqual(2 ** 20);
      return Uint8Array.from({ length }, (_, i) => {
        const at = offset + i;
        return at < start ? layout.header[at]! : (at - start) % 253;
      });
    },
  };
}

test("sizes past 2^31 and 2^32 are read at their exact places", async () => {
  const elements = 2 ** 33;
  const file = await openSafetensors(virtual(elements));
  expect(file.tensors.map(({ name, size }) => [name, size])).toEqual([
    ["large", 2 ** 34],
    ["behind", 3],
  ]);
  const rows = elements / 4;
  for (const row of [2 ** 28 - 1, 2 ** 29 - 1, 2 ** 30 - 1, rows - 2]) {
    const region = { start: [row, 1], shape: [2, 2] };
    const places = [row, row + 1].flatMap((r) => [2, 3, 4, 5].map((byte) => r * 8 + byte));
    expect([...(await readTensorRegion(file, "large", region))]).toEqual(
      places.map((place) => place % 253),
    );
  }
  expect([...(await collect(tensorChunks(file, "behind")))]).toEqual(
    [0, 1, 2].map((i) => (2 ** 34 + i) % 253),
  );
});

test("a tensor of 5 GiB streams through one chunk of memory", async () => {
  const size = 5 * 2 ** 30 + 3;
  const chunk = new Uint8Array(2 ** 26);
  const asked: number[] = [];
  const stream = streamSafetensors([{ name: "t", dtype: "U8", shape: [size] }], (_, at, length) => {
    asked.push(at);
    return chunk.subarray(0, length);
  });
  let written = 0;
  for await (const piece of stream) written += piece.length;
  expect(written).toBe(layoutSafetensors([{ name: "t", dtype: "U8", shape: [size] }]).size);
  expect(asked).toEqual(Array.from({ length: 81 }, (_, i) => i * 2 ** 26));
});

test("a source that gives too little is an error, not a shorter tensor", async () => {
  const bytes = encodeSafetensors(tensors);
  const short: ByteSource = {
    size: bytes.length,
    read: (offset, length) => bytes.subarray(offset, offset + Math.min(length, 500)).slice(0, -1),
  };
  await expect(openSafetensors(short)).rejects.toThrow(/the file has|bytes came of the header/);
  const file = { ...(await openSafetensors(memory(bytes))), source: short };
  await expect(collect(tensorChunks(file, "a"))).rejects.toThrow(
    "79 bytes came of a where 80 were asked for",
  );
  const stream = streamSafetensors(tensors, () => new Uint8Array(1));
  await expect(collect(stream)).rejects.toThrow("1 bytes came of a where 80 were asked for");
  await expect(openSafetensors(memory(new Uint8Array(5)))).rejects.toThrow("the file has 5 bytes");
  await expect(openSafetensors(memory(bytes.subarray(0, 20)))).rejects.toThrow("only 12 follow");
  await expect(openSafetensors(memory(bytes.subarray(0, -1)))).rejects.toThrow("cut short");
});

test("a region has whole sizes", async () => {
  const file = await openSafetensors(memory(encodeSafetensors(tensors, {})));
  for (const size of [0.5, Number.NaN, -1]) {
    await expect(readTensorRegion(file, "b", { start: [0], shape: [size] })).rejects.toThrow(
      'is not inside tensor "b" of [3]',
    );
  }
});

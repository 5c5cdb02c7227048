import { readFileSync } from "node:fs";
import fc from "fast-check";
import { expect, test } from "vitest";
import { toInt8 } from "../../src/packed/int8.ts";
import { nf4Codebook, toNf4 } from "../../src/packed/nf4.ts";
import { dynamicMap, packScales } from "../../src/packed/packed-scales.ts";
import { Arena } from "../kernels/arena.ts";

interface Vectors {
  readonly rows: number;
  readonly cols: number;
  readonly nf4: {
    readonly codes: string;
    readonly absmax: string;
    readonly nestedAbsmax: readonly number[];
    readonly offset: number;
    readonly firstValues: readonly number[];
    readonly sumOfSquares: number;
  };
  readonly dynamicMap: readonly number[];
  readonly int8: { readonly codes: string; readonly absmax: readonly number[] };
}

const url = new URL("../vectors/bitsandbytes.json", import.meta.url);
// oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the file has a note that says so
const vectors = JSON.parse(readFileSync(url, "utf8")) as Vectors;
const bytes = (text: string): number[] => [...Buffer.from(text, "base64")];

/** The weights of the vectors, by the rule of their note. */
function weights(): Float32Array {
  let state = 12_345n;
  return Float32Array.from({ length: vectors.rows * vectors.cols }, (_, i) => {
    state = (state * 1_103_515_245n + 12_345n) % 2n ** 31n;
    return (Number((state >> 12n) % 2049n) - 1024) / 2048 / 2 ** (Math.floor(i / 700) % 5);
  });
}

/** Bytes at the beginning of an array in the arena. */
function place(arena: Arena, values: ArrayLike<number>): number {
  const { pointer, values: space } = arena.unset(Math.ceil(values.length / 4) + 4);
  new Uint8Array(space.buffer, pointer, values.length).set(Array.from(values));
  return pointer;
}

/** Packs to NF4 with scales in 8 bits, and back by the kernels. */
function throughNf4(values: Float32Array): Float32Array {
  const { codes, scales } = toNf4(values);
  const packed = packScales(scales);
  const arena = new Arena();
  const [map, table] = [arena.floats(dynamicMap), arena.floats(nf4Codebook)];
  const groups = arena.floats(packed.groups);
  const [unpacked, out] = [arena.unset(scales.length), arena.unset(values.length)];
  // In two runs, the second of which begins within a group.
  const half = scales.length >> 1;
  const places = place(arena, packed.codes);
  for (const [from, count] of [
    [0, half],
    [half, scales.length - half],
  ] as const) {
    const into = unpacked.pointer + from * 4;
    const { pointer } = groups;
    arena.kernels.unpackScales(
      places + from,
      from,
      pointer,
      packed.offset,
      map.pointer,
      into,
      count,
    );
  }
  const at = place(arena, codes);
  arena.kernels.unpackNf4(at, unpacked.pointer, table.pointer, out.pointer, values.length);
  arena.checkGuards();
  return out.values.slice();
}

test("the dynamic map is that of bitsandbytes", () => {
  expect(dynamicMap).toHaveLength(256);
  // Its bounds are stepped in float32, each off by a digit of its own.
  dynamicMap.forEach((number, i) =>
    expect(Math.abs(number - vectors.dynamicMap[i]!)).toBeLessThan(1.2e-7),
  );
});

test("NF4 with scales in 8 bits gives the bytes of bitsandbytes, and its numbers back", () => {
  const values = weights();
  const { codes, scales } = toNf4(values);
  expect([...codes]).toEqual(bytes(vectors.nf4.codes));
  const packed = packScales(scales);
  // Two ways to sum 320 numbers in float32.
  expect(Math.abs(packed.offset - vectors.nf4.offset)).toBeLessThan(1e-7);
  expect([...packed.codes]).toEqual(bytes(vectors.nf4.absmax));
  packed.groups.forEach((group, i) =>
    expect(Math.abs(group - vectors.nf4.nestedAbsmax[i]!)).toBeLessThan(1e-7),
  );
  const back = throughNf4(values);
  vectors.nf4.firstValues.forEach((value, i) =>
    expect(Math.abs(back[i]! - value)).toBeLessThan(1e-6),
  );
  const squares = back.reduce((sum, value) => sum + value ** 2, 0);
  expect(Math.abs(squares / vectors.nf4.sumOfSquares - 1)).toBeLessThan(1e-6);
});

test("int8 gives the bytes of bitsandbytes, and numbers within half a step back", () => {
  const [values, { rows, cols }] = [weights(), vectors];
  const { codes, scales } = toInt8(values, rows);
  expect([...new Uint8Array(codes.buffer)]).toEqual(bytes(vectors.int8.codes));
  expect([...scales]).toEqual(vectors.int8.absmax);
  const arena = new Arena();
  const [at, out] = [arena.floats(scales), arena.unset(values.length)];
  const packed = place(arena, new Uint8Array(codes.buffer));
  arena.kernels.unpackInt8(packed, at.pointer, out.pointer, rows, cols);
  arena.checkGuards();
  values.forEach((value, i) => {
    const step = scales[Math.floor(i / cols)]! / 127;
    expect(Math.abs(out.values[i]! - value)).toBeLessThanOrEqual(step * 0.501);
  });
});

test("any length comes back within the widest gap of its block", () => {
  const lists = fc.array(fc.float({ min: -8, max: 8, noNaN: true }), {
    minLength: 1,
    maxLength: 200,
  });
  fc.assert(
    fc.property(lists, (list) => {
      const values = Float32Array.from(list);
      const back = throughNf4(values);
      const { scales } = toNf4(values);
      // Scales in 8 bits are off by at most half of the map's widest gap, of the largest among them.
      const off = Math.max(...scales) * 0.01;
      values.forEach((value, i) => {
        const bound = (scales[i >> 6]! * 0.3039) / 2 + off + 1e-6;
        expect(Math.abs(back[i]! - value)).toBeLessThanOrEqual(bound);
      });
      const arena = new Arena();
      const { codes, scales: rows } = toInt8(values, 1);
      const [at, out] = [arena.floats(rows), arena.unset(values.length)];
      const packed = place(arena, new Uint8Array(codes.buffer));
      arena.kernels.unpackInt8(packed, at.pointer, out.pointer, 1, values.length);
      arena.checkGuards();
      values.forEach((value, i) =>
        expect(Math.abs(out.values[i]! - value)).toBeLessThanOrEqual(
          // A step of subnormal numbers for each of 127.
          (rows[0]! / 127) * 0.501 + 127 * 2 ** -149,
        ),
      );
    }),
    { numRuns: 60, examples: [[[1.4786063069395829e-37, -7.884164786187719e-38]]] },
  );
});

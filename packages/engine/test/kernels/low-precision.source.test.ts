import { fromBf16, fromE4m3, toBf16, toE4m3 } from "@trireme/collectives";
import { expect, test } from "vitest";
import { ProductFormat } from "../../src/tape/product-format.ts";
import { Arena } from "./arena.ts";

/** Magnitudes from below the least number of each format to above its largest. */
function samples(): number[] {
  const rng = new Arena({ seed: 3 }).rng;
  const spread = Array.from({ length: 500 }, () => rng.normal() * 2 ** (40 * rng.float() - 20));
  // Halfway between two numbers, zeros, and the edges of E4M3 and E5M2.
  return [0, -0, 17, 18, 19, 464, 448, -1e6, 2 ** -10, 3 * 2 ** -11, 61_440, ...spread];
}

function rounded(
  values: readonly number[],
  step: number,
  least: number,
  largest: number,
): number[] {
  const arena = new Arena();
  const [x, out] = [arena.floats(values), arena.unset(values.length)];
  arena.kernels.roundTo(x.pointer, out.pointer, values.length, 1, step, least, largest);
  arena.checkGuards();
  return [...out.values];
}

test("E4M3 and BF16 are those of collectives", () => {
  const values = samples().map(Math.fround);
  const eight = rounded(values, 2 ** -3, 2 ** -6, 448);
  values.forEach((value, i) => {
    expect(eight[i]).toBe(fromE4m3(toE4m3(Math.max(-448, Math.min(448, value)))));
  });
  const sixteen = rounded(values, 2 ** -7, 2 ** -126, 3.3895313892515355e38);
  expect(sixteen).toEqual([...fromBf16(toBf16(Float32Array.from(values)))]);
});

test("E5M2 has two digits behind the first, even on ties, and steps of 2^-16 below 2^-14", () => {
  const values = [1, 1.125, 1.375, 1.1251, 100_000, -60_000, 2 ** -16, 1.5 * 2 ** -16, 2 ** -18];
  const wanted = [1, 1, 1.5, 1.25, 57_344, -57_344, 2 ** -16, 2 * 2 ** -16, 0];
  expect(rounded(values, 2 ** -2, 2 ** -14, 57_344)).toEqual(wanted);
});

test("each block of a row has a scale of its own", () => {
  const arena = new Arena();
  const values = [1e-4, 3e-4, 1e-4, 500, 100, 7, 9, 8, 1e-9, 1e-9];
  const [x, out] = [arena.floats(values), arena.unset(values.length)];
  arena.kernels.roundBlocksTo(x.pointer, out.pointer, 2, 5, 3, 2 ** -3, 2 ** -6, 448);
  arena.checkGuards();
  // Three digits behind the first: within 1 part in 16, whatever the block's size.
  values.forEach((value, i) => {
    expect(Math.abs(out.values[i]! - value)).toBeLessThanOrEqual(value / 16);
  });
});

test("rows packed as BF16 come back rounded, and the greatest magnitude is found", () => {
  const arena = new Arena();
  const values = samples();
  const n = values.length;
  const [x, packed, back] = [arena.floats(values), arena.unset(n), arena.unset(n)];
  arena.kernels.toBf16(x.pointer, packed.pointer, n);
  arena.kernels.fromBf16(packed.pointer, back.pointer, n);
  arena.checkGuards();
  expect([...back.values]).toEqual([...fromBf16(toBf16(x.values.slice()))]);
  const greatest = Math.max(...x.values.map(Math.abs));
  expect(arena.kernels.absMax(x.pointer, n)).toBe(greatest);
});

test("BF16 keeps NaN and infinity, ties to even and overflow, at every place of a row of any length", () => {
  const words = [
    0x7f800001, 0xffffffff, 0x7f800000, 0xff800000, 0x7f7fffff, 0x3f808000, 0x3f818000,
  ];
  const wanted = [0x7fc0, 0xffff, 0x7f80, 0xff80, 0x7f80, 0x3f80, 0x3f82];
  for (let n = 1; n <= 19; n++) {
    const arena = new Arena();
    const [x, packed] = [arena.unset(n), arena.unset(n)];
    const bits = new Uint32Array(x.values.buffer, x.pointer, n);
    for (let i = 0; i < n; i++) bits[i] = words[(i + n) % words.length]!;
    arena.kernels.toBf16(x.pointer, packed.pointer, n);
    const halves = [...new Uint16Array(x.values.buffer, packed.pointer, n)];
    expect(halves).toEqual(halves.map((_, i) => wanted[(i + n) % words.length]));
    arena.kernels.fromBf16(packed.pointer, x.pointer, n);
    expect([...bits]).toEqual(halves.map((half) => half * 2 ** 16));
    arena.checkGuards();
  }
});

test.each([
  ["block", "input", 1 / 16, 2 ** -136],
  ["current", "input", 1 / 16, 2 ** -136],
  ["current", "gradient", 1 / 8, 2 ** -143],
] as const)(
  "FP8 with %s scaling keeps an %s whose scale would pass float32",
  (scaling, role, relative, step) => {
    // The smallest scale that would, normal numbers below it, and subnormal ones alone.
    for (const greatest of [1.3e-36, 1e-37, 1e-39, 2 ** -149]) {
      const arena = new Arena();
      const values = [greatest, 0, 0, -greatest, greatest / 3, greatest / 7, 0].map(Math.fround);
      const [x, out] = [arena.floats(values), arena.unset(values.length)];
      const tensor = { pointer: x.pointer, dims: [1, values.length], size: values.length };
      const format = new ProductFormat({ kind: "fp8", scaling });
      format.round(arena.kernels, tensor, out.pointer, "w", role);
      arena.checkGuards();
      values.forEach((value, i) => {
        // Of the scale 2^126 the smallest numbers are even steps: half of one off at most.
        const off = Math.abs(out.values[i]! - value);
        expect(off).toBeLessThanOrEqual(Math.max(Math.abs(value) * relative, step));
      });
    }
  },
);

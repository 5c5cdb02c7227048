import fc from "fast-check";
import { expect, test } from "vitest";
import { Arena, expectClose } from "./arena.ts";

test("rows are gathered forward and scattered backward, with and without positions", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 3 }),
      fc.integer({ min: 1, max: 9 }),
      fc.integer({ min: 1, max: 19 }),
      fc.boolean(),
      (batch, sequence, width, learned) => {
        const arena = new Arena({ seed: width, bytes: 1e6 });
        const vocab = 5;
        const rows = batch * sequence;
        const ids = Array.from({ length: rows }, () => arena.rng.integer(vocab + 1) - 1);
        const tokens = arena.integers(ids);
        const table = arena.normal(vocab * width);
        const positions = arena.normal(sequence * width);
        const [y, dy] = [arena.unset(rows * width), arena.normal(rows * width)];
        const [dtable, dpositions] = [arena.normal(vocab * width), arena.normal(sequence * width)];
        const place = learned ? positions.pointer : 0;
        const dplace = learned ? dpositions.pointer : 0;
        const wantedY = new Float64Array(rows * width);
        const wantedTable = Float64Array.from(dtable.values);
        const wantedPositions = Float64Array.from(dpositions.values);
        for (let r = 0; r < rows; r++) {
          for (let c = 0; c < width; c++) {
            const at = (r % sequence) * width + c;
            const own = ids[r]! < 0 ? 0 : table.values[ids[r]! * width + c]!;
            wantedY[r * width + c] = own + (learned ? positions.values[at]! : 0);
            const d = dy.values[r * width + c]!;
            if (ids[r]! >= 0) wantedTable[ids[r]! * width + c]! += d;
            if (learned) wantedPositions[at]! += d;
          }
        }
        const sizes = [batch, sequence, width] as const;
        arena.kernels.embeddingForward(tokens.pointer, place, table.pointer, y.pointer, ...sizes);
        arena.kernels.embeddingBackward(
          tokens.pointer,
          dy.pointer,
          dtable.pointer,
          dplace,
          ...sizes,
        );
        arena.checkGuards();
        // One rounding forward; up to 28 additions to a row backward.
        expectClose(y.values, wantedY, 1e-7);
        expectClose(dtable.values, wantedTable, 2e-6);
        expectClose(dpositions.values, wantedPositions, 2e-6);
      },
    ),
  );
});

test.each([
  { headDim: 2, heads: 1, first: 0 },
  { headDim: 10, heads: 3, first: 0 },
  { headDim: 64, heads: 2, first: 100_000 },
])("rotary turns pairs of $heads heads of $headDim by position, from $first", (c) => {
  const { headDim, heads, first } = c;
  const arena = new Arena();
  const [batch, sequence, stride] = [2, 9, heads * headDim + 5];
  const x = arena.normal(batch * sequence * stride);
  const before = Float64Array.from(x.values);
  const turn = (direction: 1 | -1) =>
    arena.kernels.rotary(
      x.pointer,
      batch,
      sequence,
      heads,
      stride,
      headDim,
      10_000,
      direction,
      first,
    );
  const wanted = Float64Array.from(before);
  const half = headDim / 2;
  for (let row = 0; row < batch * sequence; row++) {
    for (let head = 0; head < heads; head++) {
      for (let i = 0; i < half; i++) {
        const angle = (first + (row % sequence)) * 10_000 ** ((-2 * i) / headDim);
        const at = row * stride + head * headDim + i;
        const [u, v] = [before[at]!, before[at + half]!];
        wanted[at] = u * Math.cos(angle) - v * Math.sin(angle);
        wanted[at + half] = v * Math.cos(angle) + u * Math.sin(angle);
      }
    }
  }
  turn(1);
  arena.checkGuards();
  expectClose(x.values, wanted, 3e-7);
  turn(-1);
  expectClose(x.values, before, 5e-7);
});

test.each([
  { width: 2, heads: 1, first: 0 },
  { width: 6, heads: 3, first: 7 },
  { width: 64, heads: 2, first: 100_000 },
])("rotaryPairs turns neighbours of $width of each of $heads heads, from $first", (c) => {
  const { width, heads, first } = c;
  const arena = new Arena();
  const [batch, sequence, headStride] = [2, 5, width + 3];
  const stride = heads * headStride + 5;
  const x = arena.normal(batch * sequence * stride);
  const before = Float64Array.from(x.values);
  const wanted = Float64Array.from(before);
  for (let row = 0; row < batch * sequence; row++) {
    for (let head = 0; head < heads; head++) {
      for (let i = 0; i < width; i += 2) {
        const angle = (first + (row % sequence)) * 10_000 ** (-i / width);
        const at = row * stride + head * headStride + i;
        const [u, v] = [before[at]!, before[at + 1]!];
        wanted[at] = u * Math.cos(angle) - v * Math.sin(angle);
        wanted[at + 1] = v * Math.cos(angle) + u * Math.sin(angle);
      }
    }
  }
  const sizes = [batch, sequence, heads, stride, headStride, width] as const;
  arena.kernels.rotaryPairs(x.pointer, ...sizes, 10_000, 1, first);
  arena.checkGuards();
  expectClose(x.values, wanted, 3e-7);
  arena.kernels.rotaryPairs(x.pointer, ...sizes, 10_000, -1, first);
  expectClose(x.values, before, 5e-7);
});

test("without a first position rotary begins at 0, which turns nothing", () => {
  const arena = new Arena();
  const x = arena.normal(8);
  const before = Array.from(x.values);
  arena.kernels.rotary(x.pointer, 1, 1, 1, 8, 8, 10_000, 1);
  expect(Array.from(x.values)).toEqual(before);
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { type Packing, pack, packedRow, packedRows, packingFill } from "@trireme/dataloader";

/** The documents of each row. */
const rowsOf = ({ ends, document }: Packing): number[][] =>
  Array.from(ends, (end, row) => [...document.subarray(row === 0 ? 0 : ends[row - 1], end)]);

/** The plain way: look at every open row for each document, longest first. */
function slowly(
  lengths: readonly number[],
  capacity: number,
  method: "first-fit" | "best-fit",
): number[][] {
  const rows: { room: number; documents: number[]; filled: number }[] = [];
  let clock = 0;
  const order = lengths.map((_, d) => d).sort((a, b) => lengths[b]! - lengths[a]! || a - b);
  for (const d of order) {
    const fitting = rows.filter(({ room }) => room >= lengths[d]!);
    if (method === "best-fit") fitting.sort((a, b) => a.room - b.room || b.filled - a.filled);
    let row = fitting[0];
    if (row === undefined) rows.push((row = { room: capacity, documents: [], filled: 0 }));
    row.room -= lengths[d]!;
    row.documents.push(d);
    row.filled = ++clock;
  }
  return rows.map(({ documents }) => documents);
}

test("the vectors of first-fit decreasing", () => {
  const first = (lengths: number[]) => pack({ lengths, capacity: 10, method: "first-fit" });
  expect(rowsOf(first([7, 5, 5, 4, 3, 3, 2, 1]))).toEqual([
    [0, 4],
    [1, 2],
    [3, 5, 6, 7],
  ]);
  const other = first([5, 7, 5, 2, 4, 2, 5, 1, 6]);
  expect(rowsOf(other)).toEqual([
    [1, 3, 7],
    [8, 4],
    [0, 2],
    [6, 5],
  ]);
  // Room left [0, 0, 0, 3].
  expect(packingFill(other)).toBe(37 / 40);
});

test("both fits are what the plain search gives", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 70 }),
      fc.array(fc.nat(), { maxLength: 60 }),
      (capacity, raw) => {
        const lengths = raw.map((value) => 1 + (value % capacity));
        for (const method of ["first-fit", "best-fit"] as const) {
          expect(rowsOf(pack({ lengths, capacity, method }))).toEqual(
            slowly(lengths, capacity, method),
          );
        }
      },
    ),
  );
});

test("best fit is the plain search in long rows too, where its tree has several levels", () => {
  const lengths = fc.array(fc.integer({ min: 1, max: 70_000 }), { maxLength: 80 });
  fc.assert(
    fc.property(lengths, (list) => {
      const packing = pack({ lengths: list, capacity: 70_000, method: "best-fit" });
      expect(rowsOf(packing)).toEqual(slowly(list, 70_000, "best-fit"));
    }),
  );
});

test("every method holds each token once and no row too many", () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(50), { maxLength: 40 }),
      fc.integer({ min: 1, max: 20 }),
      fc.constantFrom("concatenate", "first-fit", "best-fit"),
      (lengths, capacity, method) => {
        const packing = pack({ lengths, capacity, method });
        const seen = lengths.map((length) => new Uint8Array(length));
        let segment = 0;
        for (const end of packing.ends) {
          let used = 0;
          for (; segment < end; segment++) {
            const [start, count] = [packing.start[segment]!, packing.length[segment]!];
            for (let i = start; i < start + count; i++) seen[packing.document[segment]!]![i]!++;
            used += count;
          }
          expect(used).toBeGreaterThan(0);
          expect(used).toBeLessThanOrEqual(capacity);
        }
        expect(seen.every((tokens) => tokens.every((count) => count === 1))).toBe(true);
      },
    ),
  );
});

test("concatenation leaves padding in the last row only", () => {
  const packing = pack({ lengths: [3, 0, 4, 6], capacity: 5, method: "concatenate" });
  expect(packedRows(packing)).toBe(3);
  expect([...packing.length]).toEqual([3, 2, 2, 3, 3]);
  expect([...packing.start]).toEqual([0, 0, 2, 0, 3]);
});

test("a document longer than a row is split, truncated or refused", () => {
  const options = { lengths: [3, 12], capacity: 5, method: "first-fit" } as const;
  expect(pack(options).length.reduce((a, b) => a + b)).toBe(15);
  expect([...pack({ ...options, long: "truncate" }).length]).toEqual([5, 3]);
  expect(() => pack({ ...options, long: "refuse" })).toThrow("document 1 has 12 tokens, a row 5");
  expect(() => pack({ ...options, capacity: 0 })).toThrow("a row of 0 tokens");
  expect(() => pack({ ...options, lengths: [1.5] })).toThrow("document 0 has length 1.5");
  expect(packingFill(pack({ ...options, lengths: [] }))).toBe(1);
});

test("a row has labels, positions, mask and boundaries of each segment by itself", () => {
  const documents = [[11, 12, 13], [21, 22], [31]];
  const lengths = documents.map((tokens) => tokens.length);
  const read = (document: number, start: number, into: Int32Array) =>
    into.set(documents[document]!.slice(start, start + into.length));
  const packing = pack({ lengths, capacity: 7, method: "first-fit" });
  expect(packedRow(packing, 0, lengths, read, 9)).toEqual({
    tokens: Int32Array.of(11, 12, 13, 21, 22, 31, 9),
    labels: Int32Array.of(12, 13, 9, 22, 9, 9, 9),
    positions: Int32Array.of(0, 1, 2, 0, 1, 0, 0),
    lossMask: Uint8Array.of(1, 1, 0, 1, 0, 0, 0),
    boundaries: Int32Array.of(0, 3, 5, 6),
  });
  expect(() => packedRow(packing, 1, lengths, read)).toThrow("row 1 is outside 0..0");
});

test("every token but the first of a document is a label exactly once, however rows cut it", () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(30), { maxLength: 12 }),
      fc.integer({ min: 1, max: 12 }),
      fc.constantFrom("concatenate", "first-fit", "best-fit"),
      (lengths, capacity, method) => {
        const packing = pack({ lengths, capacity, method });
        const seen = new Map<number, number>();
        // Token = document · 100 + place.
        const read = (document: number, start: number, into: Int32Array) =>
          into.forEach((_, i) => (into[i] = document * 100 + start + i));
        for (let row = 0; row < packedRows(packing); row++) {
          const { tokens, labels, lossMask } = packedRow(packing, row, lengths, read, -1);
          lossMask.forEach((counts, i) => {
            if (counts === 0) return;
            if (labels[i] !== tokens[i]! + 1)
              throw new Error(`label ${labels[i]} after ${tokens[i]}`);
            seen.set(labels[i], (seen.get(labels[i]) ?? 0) + 1);
          });
        }
        const wanted = lengths.flatMap((length, d) =>
          Array.from({ length: Math.max(0, length - 1) }, (_, i) => d * 100 + 1 + i),
        );
        expect([...seen.keys()].sort((a, b) => a - b)).toEqual(wanted);
        expect([...seen.values()].every((count) => count === 1)).toBe(true);
      },
    ),
  );
});

test("a row has no more tokens than its positions count in 32 bits", () => {
  expect(() => pack({ lengths: [1], capacity: 2 ** 31, method: "best-fit" })).toThrow(
    "a row of 2147483648 tokens; use an integer in 1..2^31-1",
  );
});

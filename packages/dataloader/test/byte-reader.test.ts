import fc from "fast-check";
import { expect, test } from "vitest";
import { type ByteReader, memoryReader, readAhead } from "@trireme/dataloader";

/** Bytes in memory that note each read. */
function notedReader(size: number): {
  reader: ByteReader;
  bytes: Uint8Array;
  reads: [number, number][];
} {
  const bytes = Uint8Array.from({ length: size }, (_, i) => (i * 31) % 251);
  const memory = memoryReader("x", bytes);
  const reads: [number, number][] = [];
  const reader: ByteReader = {
    name: "x",
    size,
    read(offset, into) {
      reads.push([offset, into.length]);
      memory.read(offset, into);
    },
  };
  return { reader, bytes, reads };
}

test("reading ahead gives the bytes that are there, for any ranges in any order", () => {
  const { reader, bytes } = notedReader(600_000);
  const range = fc.tuple(fc.nat(600_000), fc.nat(300_000), fc.boolean());
  fc.assert(
    fc.property(fc.array(range, { maxLength: 20 }), (ranges) => {
      const read = readAhead(reader);
      let end = 0;
      for (const [at, length, follow] of ranges) {
        const offset = follow ? Math.max(0, end - 2) : at;
        end = Math.min(600_000, offset + length);
        const view = read(offset, end - offset);
        expect(Buffer.compare(view, bytes.subarray(offset, end))).toBe(0);
      }
    }),
    { numRuns: 50 },
  );
});

test("ranges that follow one another cost a read per 256 KiB, jumps one each of their own size", () => {
  const { reader, reads } = notedReader(1_000_000);
  const read = readAhead(reader);
  for (let offset = 0; offset + 8194 <= 1_000_000; offset += 8192) read(offset, 8194);
  // One before it is seen that they follow, then 999,424 bytes in steps of at most 262,144.
  expect(reads.length).toBe(1 + 4);
  reads.length = 0;
  for (const offset of [400_000, 5, 200_000]) read(offset, 100);
  expect(reads).toEqual([
    [400_000, 100],
    [5, 100],
    [200_000, 100],
  ]);
});

test("a failed read leaves nothing behind that a later one could take for data", () => {
  const { reader, bytes } = notedReader(100);
  let broken = true;
  const read = readAhead({
    name: "x",
    size: 100,
    read(offset, into) {
      if (broken) throw new Error("no");
      reader.read(offset, into);
    },
  });
  expect(() => read(10, 20)).toThrow("no");
  broken = false;
  expect([...read(10, 20)]).toEqual([...bytes.subarray(10, 30)]);
});

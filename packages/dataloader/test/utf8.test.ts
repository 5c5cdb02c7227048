import fc from "fast-check";
import { expect, test } from "vitest";
import { firstInvalidUtf8 } from "@trireme/dataloader";

const valid = (bytes: Uint8Array): boolean => {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
};

test("agrees with the platform's decoder, and what precedes the offset is valid", () => {
  // Bytes near the bounds of the tables, so that random strings are often almost valid.
  const byte = fc.constantFrom(
    0x41,
    0x80,
    0x8f,
    0x90,
    0x9f,
    0xa0,
    0xbf,
    0xc0,
    0xc2,
    0xe0,
    0xed,
    0xef,
    0xf0,
    0xf4,
    0xf5,
  );
  fc.assert(
    fc.property(fc.array(byte, { maxLength: 8 }), (list) => {
      const bytes = Uint8Array.from(list);
      const at = firstInvalidUtf8(bytes);
      expect(at === -1).toBe(valid(bytes));
      expect(valid(bytes.subarray(0, at === -1 ? bytes.length : at))).toBe(true);
    }),
    { numRuns: 5000 },
  );
});

test("every code point passes", () => {
  const points = Array.from({ length: 0x110000 }, (_, i) => i).filter(
    (i) => i < 0xd800 || i > 0xdfff,
  );
  let text = "";
  for (const point of points) text += String.fromCodePoint(point);
  expect(firstInvalidUtf8(new TextEncoder().encode(text))).toBe(-1);
});

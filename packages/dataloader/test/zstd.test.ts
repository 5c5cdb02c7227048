import fc from "fast-check";
import { expect, test } from "vitest";
import { zstdCompress, zstdDecompress, zstdPieces } from "@trireme/dataloader/zstd";

/** Two frames that zstd 1.5.4 wrote, one with a checksum, one without its size. */
const known = Buffer.from(
  "KLUv/SQi/QAAyHsidGV4dCI6Im9uZSJ9Cnp3ZWkgw7wifQoBAFLMOo9x4B0otS/9AGiJAAB7InRleHQiOiJ0aHJlZSJ9Cg==",
  "base64",
);
const text = (bytes: Uint8Array): string => new TextDecoder().decode(bytes);

test("frames of the reference are read, one after the other, however they are cut", async () => {
  const whole = '{"text":"one"}\n{"text":"zwei ü"}\n{"text":"three"}\n';
  expect(text(await zstdDecompress("x", known))).toBe(whole);
  const single = Array.from(known, (byte) => Uint8Array.of(byte));
  let found = "";
  for await (const piece of zstdPieces("x", single)) found += text(piece);
  expect(found).toBe(whole);
});

test("what is compressed comes back, at any level", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.uint8Array({ maxLength: 3000 }),
      fc.integer({ min: 1, max: 22 }),
      fc.nat(50),
      async (bytes, level, copies) => {
        const content = Buffer.concat(Array.from({ length: copies }, () => bytes));
        const back = await zstdDecompress("x", await zstdCompress(content, level));
        expect(Buffer.from(back).equals(content)).toBe(true);
      },
    ),
    { numRuns: 30 },
  );
});

test("other formats, cut and damaged frames are refused with file and place", async () => {
  const of = (bytes: Uint8Array) => zstdDecompress("x.zst", bytes);
  await expect(of(new TextEncoder().encode("plain text"))).rejects.toThrow(
    "x.zst at byte 0: no zstd: it starts with 0x69616c70",
  );
  await expect(of(new Uint8Array(0))).rejects.toThrow("x.zst at byte 0: 0 bytes");
  for (const cut of [5, 20, known.length - 1]) {
    await expect(of(known.subarray(0, cut))).rejects.toThrow("it is cut short");
  }
  await expect(of(Buffer.concat([known, Buffer.from("some junk")]))).rejects.toThrow(
    "malformed zstd",
  );
  await expect(zstdCompress(new Uint8Array(1), 23)).rejects.toThrow("zstd level 23");
});

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  checkpointName,
  commitPlan,
  completeCheckpoints,
  crc32,
  verifyFiles,
} from "@trireme/checkpoint";

const text = (s: string): Uint8Array => new TextEncoder().encode(s);

/** Bit by bit, as the definition has it. */
function slowCrc32(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return ~crc >>> 0;
}

test("CRC-32 has its check value, agrees with the definition, and continues", () => {
  expect(crc32(text("123456789"))).toBe(0xcbf43926);
  expect(crc32(text(""))).toBe(0);
  // zlib.crc32 of Python 3: b"The quick brown fox jumps over the lazy dog".
  expect(crc32(text("The quick brown fox jumps over the lazy dog"))).toBe(0x414fa339);
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100 }), fc.nat(100), fc.nat(7), (bytes, cut, shift) => {
      const padded = new Uint8Array(bytes.length + shift);
      padded.set(bytes, shift);
      const view = padded.subarray(shift);
      expect(crc32(view)).toBe(slowCrc32(bytes));
      expect(crc32(view.subarray(cut), crc32(view.subarray(0, cut)))).toBe(slowCrc32(bytes));
    }),
  );
});

const files = [
  { name: "a.safetensors", bytes: text("weights") },
  { name: "b.safetensors", bytes: text("moments") },
];

function markerOf(checksum?: (bytes: Uint8Array) => number): string {
  const plan = commitPlan({
    directory: "d",
    step: 4,
    files,
    keep: 1,
    existing: [],
    ...(checksum === undefined ? {} : { checksum }),
  });
  const write = plan.find(
    ({ kind, ...o }) => kind === "write" && "path" in o && o.path.endsWith("COMPLETE"),
  );
  return write?.kind === "write" ? new TextDecoder().decode(write.bytes) : "";
}

test("a marker with checksums finds a flipped bit, one without only a size", () => {
  const marker = markerOf(crc32);
  expect(verifyFiles(marker, files)).toEqual({ ok: true });
  const flipped = files.map(({ name, bytes }) => ({ name, bytes: bytes.with(2, bytes[2]! ^ 1) }));
  expect(verifyFiles(marker, flipped)).toEqual({
    ok: false,
    reason: expect.stringMatching(
      /^a\.safetensors has CRC-32 [0-9a-f]{8}; [0-9a-f]{8} was written$/,
    ),
  });
  expect(verifyFiles(markerOf(), flipped)).toEqual({ ok: true });
  expect(verifyFiles(marker, files.slice(1))).toEqual({
    ok: false,
    reason: "a.safetensors is missing",
  });
  const short = files.map(({ name, bytes }) => ({ name, bytes: bytes.subarray(1) }));
  expect(verifyFiles(markerOf(), short)).toEqual({
    ok: false,
    reason: "a.safetensors has 6 bytes; 7 were written",
  });
  expect(verifyFiles(marker.slice(0, 30), files).ok).toBe(false);
});

test("an entry listed with its checksums is complete only where they agree", () => {
  const marker = markerOf(crc32);
  const entry = (crc: (bytes: Uint8Array) => number) => ({
    name: checkpointName(4, 0),
    marker,
    files: files.map(({ name, bytes }) => ({ name, size: bytes.length, crc32: crc(bytes) })),
  });
  expect(completeCheckpoints([entry(crc32)]).length).toBe(1);
  expect(completeCheckpoints([entry((bytes) => crc32(bytes) ^ 1)]).length).toBe(0);
});

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  FormatError,
  type MegatronIndex,
  type TokenType,
  decodeMegatronIndex,
  encodeMegatronIndex,
  tokenTypeFor,
  tokenWidth,
} from "@trireme/dataloader";

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

// What Megatron-LM's own writer gives for sequences of 3 and 2 tokens, one document each, 16-bit tokens.
const golden =
  "4d4d494449445800000100000000000000080200000000000000030000000000000003000000020000000000000000000000" +
  "0600000000000000000000000000000001000000000000000200000000000000";
const index: MegatronIndex = {
  type: "u16",
  lengths: Int32Array.of(3, 2),
  documents: Float64Array.of(0, 1, 2),
};

test("the bytes are Megatron's", () => {
  expect(hex(encodeMegatronIndex(index))).toBe(golden);
  expect(decodeMegatronIndex("x.idx", Buffer.from(golden, "hex"), 10)).toEqual(index);
});

test("decode inverts encode, with modes and with documents of several sequences", () => {
  const indices = fc
    .record({
      type: fc.constantFrom<TokenType>("u8", "i8", "i16", "i32", "i64", "f64", "f32", "u16"),
      lengths: fc.array(fc.nat(2 ** 31 - 1), { maxLength: 20 }),
      cuts: fc.array(fc.nat(20), { maxLength: 5 }),
      modes: fc.boolean(),
    })
    .map(({ type, lengths, cuts, modes }): MegatronIndex => {
      const inner = cuts.map((cut) => Math.min(cut, lengths.length)).sort((a, b) => a - b);
      const documents = Float64Array.from([0, ...inner, lengths.length]);
      const plain = { type, lengths: Int32Array.from(lengths), documents };
      const kinds = Int8Array.from(lengths, (length) => (length % 256) - 128);
      return modes && lengths.length > 0 ? Object.assign(plain, { modes: kinds }) : plain;
    });
  fc.assert(
    fc.property(indices, (some) => {
      const total = some.lengths.reduce((sum, length) => sum + length, 0) * tokenWidth(some.type);
      expect(decodeMegatronIndex("x.idx", encodeMegatronIndex(some), total)).toEqual(some);
    }),
  );
});

test("pointers beyond 2^32 are exact", () => {
  const lengths = new Int32Array(5).fill(2 ** 31 - 1);
  const bytes = encodeMegatronIndex({ type: "i32", lengths, documents: Float64Array.of(0, 5) });
  const view = new DataView(bytes.buffer);
  expect(Number(view.getBigInt64(34 + 4 * 5 + 8 * 4, true))).toBe(4 * (2 ** 31 - 1) * 4);
  expect(decodeMegatronIndex("x.idx", bytes, 5 * (2 ** 31 - 1) * 4).lengths).toEqual(lengths);
});

test("what is wrong is refused with the file, the place and the reason", () => {
  const bytes = Buffer.from(golden, "hex");
  const change = (offset: number, value: number) => {
    const copy = Buffer.from(bytes);
    copy[offset] = value;
    return copy;
  };
  const cases: [Uint8Array, string][] = [
    [bytes.subarray(0, 33), "x.idx: 33 bytes; the header of an index alone has 34"],
    [change(3, 0), 'x.idx at byte 3: no Megatron index: it does not start with "MMIDIDX"'],
    [change(9, 2), "x.idx at byte 9: version 2; only version 1 is known"],
    [change(17, 9), "x.idx at byte 17: element type 9"],
    [bytes.subarray(0, 81), "cut short"],
    [Buffer.concat([bytes, Buffer.alloc(1)]), "too long"],
    [change(25, 0xff), "x.idx at byte 18: more than 2^53-1 sequences"],
    [change(37, 0x80), "x.idx at byte 34: sequence 0 has length -"],
    [change(50, 5), "x.idx at byte 50: sequence 1 starts at 5; those before it end at 6"],
    [change(58, 1), "the document index starts with 1"],
    [change(74, 3), "the document index ends with 3; it must end with the number of sequences, 2"],
    [change(66, 9), "document entry 2 is 2, below the one before it"],
    [change(17, 4), "sequence 1 starts at 6; those before it end at 12"],
  ];
  for (const [wrong, reason] of cases) {
    const decode = () => decodeMegatronIndex("x.idx", wrong);
    expect(decode).toThrow(reason);
    expect(decode).toThrow(FormatError);
  }
  expect(() => decodeMegatronIndex("x.idx", bytes, 12)).toThrow(
    "its sequences have 10 bytes, the data file has 12",
  );
  expect(() => encodeMegatronIndex({ ...index, documents: Float64Array.of(0, 1) })).toThrow(
    "ends with 1",
  );
  expect(() => encodeMegatronIndex({ ...index, modes: new Int8Array(1) })).toThrow(
    "1 modes for 2 sequences",
  );
});

test("16-bit tokens up to a vocabulary of 65,499, as Megatron decides it", () => {
  expect([256, 65_499, 65_500, 128_256].map(tokenTypeFor)).toEqual(["u16", "u16", "i32", "i32"]);
});

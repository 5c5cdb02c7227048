import { readFile } from "node:fs/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  encodeTar,
  encodeWebDataset,
  memoryReader,
  readTar,
  readWebDataset,
  tarContent,
} from "@trireme/dataloader";

const vectors: Readonly<Record<"ustar" | "pax" | "gnu", string>> = JSON.parse(
  await readFile(new URL("vectors/tar.json", import.meta.url), "utf8"),
);
const archive = (format: keyof typeof vectors) =>
  new Uint8Array(Buffer.from(vectors[format], "base64"));

const bytes = (text: string) => new TextEncoder().encode(text);
const short: [string, Uint8Array][] = [
  ["a/0001.txt", bytes("hello")],
  ["a/0001.cls", bytes("7")],
  ["a/0002.txt", bytes("")],
  ["a/0002.seg.png", Uint8Array.from({ length: 768 }, (_, i) => i % 256)],
];
const long: [string, Uint8Array][] = [
  [`${"d".repeat(120)}/${"n".repeat(90)}.txt`, bytes("long")],
  [`${"x".repeat(300)}.txt`, bytes("longer")],
  ["grüße.txt", bytes("u")],
];

const filesOf = (tar: Uint8Array): [string, Uint8Array][] => {
  const reader = memoryReader("x.tar", tar);
  return Array.from(readTar(reader), (entry) => [entry.name, tarContent(reader, entry)]);
};

test("archives that Python's tarfile wrote in each format are read whole", () => {
  const prefix: [string, Uint8Array] = [
    `${"p".repeat(100)}/${"q".repeat(60)}.txt`,
    bytes("prefix"),
  ];
  expect(filesOf(archive("ustar"))).toEqual([...short, prefix]);
  expect(filesOf(archive("pax"))).toEqual([...short, ...long]);
  expect(filesOf(archive("gnu"))).toEqual([...short, ...long]);
});

test("what was written is read back, whatever the names", () => {
  const name = fc
    .array(fc.string({ unit: "grapheme", minLength: 1, maxLength: 80 }), {
      minLength: 1,
      maxLength: 4,
    })
    .map((parts) => parts.map((part) => part.replaceAll(/[\0/]/g, "_")).join("/"));
  fc.assert(
    fc.property(
      fc.array(fc.tuple(name, fc.uint8Array({ maxLength: 1200 })), { maxLength: 5 }),
      (files) => {
        const tar = encodeTar(files.map(([file, data]) => ({ name: file, data })));
        expect(tar.length % 10_240).toBe(0);
        expect(filesOf(tar)).toEqual(files);
      },
    ),
  );
});

test("an archive that was cut at any byte is refused", () => {
  const tar = encodeTar(short.map(([name, data]) => ({ name, data })));
  const content = tar.length - 1 - tar.toReversed().findIndex((byte) => byte !== 0);
  const end = Math.ceil((content + 1) / 512) * 512;
  for (let length = 1; length < end; length += 7) {
    expect(() => filesOf(tar.subarray(0, length))).toThrow("x.tar");
  }
  expect(() => filesOf(tar.subarray(0, end))).toThrow("does not end with a block of zeros");
});

test("a changed header is refused with its place", () => {
  const tar = archive("ustar");
  const change = (offset: number, value: number) => {
    const copy = tar.slice();
    copy[offset] = value;
    return copy;
  };
  expect(() => filesOf(change(2, 0x41))).toThrow("x.tar at byte 0: no tar header: its checksum is");
  expect(() => filesOf(change(1024 + 150, 0x39))).toThrow('x.tar at byte 1172: "');
});

test("sizes of 8 GiB and more, in base 256, are exact", () => {
  const size = 2 ** 40 + 5;
  const head = encodeTar([{ name: "big.bin", data: new Uint8Array(0) }]).slice(0, 512);
  head.fill(0, 124, 136);
  head[124] = 0x80;
  for (let k = 0; k < 8; k++) head[135 - k] = Math.floor(size / 256 ** k) % 256;
  const sum = head.reduce((total, byte, i) => total + (i >= 148 && i < 156 ? 0x20 : byte), 0);
  head.set(bytes(`${sum.toString(8).padStart(6, "0")}\0 `), 148);
  const reader = {
    name: "big.tar",
    size: 512 + Math.ceil(size / 512) * 512 + 1024,
    read: (offset: number, into: Uint8Array) => into.set(offset === 0 ? head : new Uint8Array(512)),
  };
  expect([...readTar(reader)]).toEqual([{ name: "big.bin", offset: 512, size }]);
});

test("files under one name up to the first dot are one sample", () => {
  const samples = Array.from(
    readWebDataset(memoryReader("x.tar", archive("ustar"))),
    ({ key, parts }) => [key, [...parts.keys()]],
  );
  expect(samples.slice(0, 2)).toEqual([
    ["a/0001", ["txt", "cls"]],
    ["a/0002", ["txt", "seg.png"]],
  ]);
});

test("a data set is written and read back, and what belongs to no sample is passed over", () => {
  const samples = [
    { key: "a.b/1", parts: { txt: bytes("x"), "seg.png": bytes("y") } },
    { key: "a.b/2", parts: { txt: bytes("z") } },
  ];
  const reader = memoryReader("x.tar", encodeWebDataset(samples));
  const read = Array.from(readWebDataset(reader), ({ key, parts }) => ({
    key,
    parts: Object.fromEntries(
      Array.from(parts, ([part, entry]) => [part, tarContent(reader, entry)]),
    ),
  }));
  expect(read).toEqual(samples);
  const others = encodeTar(
    [".DS_Store", "README", "a.txt", "b/.hidden"].map((name) => ({ name, data: bytes("") })),
  );
  expect(Array.from(readWebDataset(memoryReader("x.tar", others)), ({ key }) => key)).toEqual([
    "a",
  ]);
});

test("samples that are apart, parts that come twice and keys that do not fit are refused", () => {
  const read =
    (...names: string[]) =>
    () => [
      ...readWebDataset(
        memoryReader("x.tar", encodeTar(names.map((name) => ({ name, data: bytes("") })))),
      ),
    ];
  expect(read("1.txt", "2.txt", "1.cls")).toThrow(
    "x.tar at byte 1024: sample 1 comes twice, or its files are apart",
  );
  expect(read("1.txt", "1.TXT")).toThrow("sample 1 has two files .txt");
  expect(() => encodeWebDataset([{ key: "a.b", parts: { txt: bytes("") } }])).toThrow(
    "without a dot",
  );
  expect(() =>
    encodeWebDataset([
      { key: "a", parts: { txt: bytes("") } },
      { key: "a", parts: { txt: bytes("") } },
    ]),
  ).toThrow("two samples have the key");
  expect(() => encodeWebDataset([{ key: "a", parts: { TXT: bytes("") } }])).toThrow("lower case");
});

test("an extended header whose size would lead back to it is refused, not followed for ever", () => {
  const tar = encodeTar([{ name: "é", data: new Uint8Array(3) }]);
  const record = bytes("14 size=-1024\n");
  const broken = tar.slice();
  broken.fill(0, 512, 1024);
  broken.set(record, 512);
  broken.set(bytes(record.length.toString(8).padStart(11, "0")), 124);
  broken.fill(0x20, 148, 156);
  const sum = broken.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  broken.set(bytes(`${sum.toString(8).padStart(6, "0")}\0 `), 148);
  expect(() => filesOf(broken)).toThrow(
    "at byte 512: the extended header has a size that is no count",
  );
});

test("a directory of an archive older than ustar is no file", () => {
  const tar = encodeTar([
    { name: "folder/", data: new Uint8Array(0) },
    { name: "f", data: bytes("x") },
  ]);
  // Type NUL, as version 7 wrote it: one "0" less in the sum.
  tar[156] = 0;
  tar.fill(0x20, 148, 156);
  const sum = tar.subarray(0, 512).reduce((total, byte) => total + byte, 0);
  tar.set(bytes(`${sum.toString(8).padStart(6, "0")}\0 `), 148);
  expect(filesOf(tar)).toEqual([["f", bytes("x")]]);
});

test("a sample without parts is refused, as an archive would lose it", () => {
  expect(() => encodeWebDataset([{ key: "a", parts: {} }])).toThrow('sample "a" has no part');
});

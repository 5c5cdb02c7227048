import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TriremeError } from "@trireme/core";
import { readTextDocuments } from "@trireme/dataloader/node";

let directory = "";
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "trireme-text-"));
});
afterAll(async () => {
  await rm(directory, { recursive: true });
});

const put = async (name: string, bytes: string | Uint8Array): Promise<string> => {
  const path = join(directory, name);
  await mkdir(join(path, ".."), { recursive: true });
  await writeFile(path, bytes);
  return path;
};

const escape = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\/]/g, "\\$&");

test("a file is one document, without its byte order mark", async () => {
  const path = await put("one.txt", "\uFEFFgrüße\r\n");
  expect(await readTextDocuments(path)).toEqual([{ name: path, text: "grüße\r\n" }]);
});

test("a directory gives its .txt files in order of name and nothing else", async () => {
  for (const name of ["b.txt", "a.txt", "B.txt", "a10.txt", "a9.txt", "c.md", "sub/d.txt"]) {
    await put(`many/${name}`, name);
  }
  const documents = await readTextDocuments(join(directory, "many"));
  expect(documents.map(({ text }) => text)).toEqual([
    "B.txt",
    "a.txt",
    "a10.txt",
    "a9.txt",
    "b.txt",
  ]);
});

test("what cannot be read is refused in one line that has the path and the reason", async () => {
  const cases: [string, string][] = [
    [join(directory, "absent.txt"), "no such file or directory"],
    [join(await put("file.txt", "x"), "below"), "a part of the path is not a directory"],
    [await put("empty.txt", ""), "the file is empty"],
    [await put("mark.txt", "\uFEFF"), "a byte order mark and nothing else"],
    [await put("latin1.txt", Uint8Array.of(0x61, 0x62, 0xe9, 0x63)), "byte 0xe9 at offset 2"],
    [await put("cut.txt", Uint8Array.of(0x61, 0xe2, 0x82)), "byte 0xe2 at offset 1"],
    [join(await put("none/readme.md", "x"), ".."), "the directory has no .txt file"],
  ];
  for (const [path, reason] of cases) {
    // The whole message, so that it is one line and starts with the path.
    const pattern = `^${escape(path)}: [^\n]*${escape(reason)}[^\n]*$`;
    await expect(readTextDocuments(path)).rejects.toThrow(new RegExp(pattern, "u"));
    await expect(readTextDocuments(path)).rejects.toBeInstanceOf(TriremeError);
  }
});

test("a bad file in a directory is named", async () => {
  await put("mixed/a.txt", "fine");
  const bad = await put("mixed/b.txt", "");
  await expect(readTextDocuments(join(directory, "mixed"))).rejects.toThrow(
    `${bad}: the file is empty`,
  );
});

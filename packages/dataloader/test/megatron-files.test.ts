import { appendFile, mkdtemp, rm, truncate, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { tokenDataset } from "@trireme/dataloader";
import { openFileReader, openMegatronFiles, writeMegatronFiles } from "@trireme/dataloader/node";

let directory = "";
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "trireme-megatron-"));
});
afterAll(async () => {
  await rm(directory, { recursive: true });
});

test("what was written is read back, documents and all", async () => {
  for (const vocabulary of [100, 100_000]) {
    const tokens = Int32Array.from({ length: 3000 }, (_, i) => (i * i) % vocabulary);
    const prefix = join(directory, `v${vocabulary}`);
    await writeMegatronFiles(
      prefix,
      tokenDataset(tokens, Float64Array.of(10, 10, 3000), vocabulary),
    );
    const files = await openMegatronFiles(prefix);
    const { index, source } = files;
    expect([...index.lengths]).toEqual([10, 0, 2990]);
    expect([...index.documents]).toEqual([0, 1, 2, 3]);
    const into = new Int32Array(100);
    source.read(2900, into);
    expect(into).toEqual(tokens.slice(2900));
    files.close();
  }
});

test("a missing file, a data file of another size and one that shrinks are refused by name", async () => {
  await expect(openMegatronFiles(join(directory, "none"))).rejects.toThrow(
    "none.bin: no such file",
  );
  const prefix = join(directory, "short");
  await writeMegatronFiles(prefix, tokenDataset(new Uint16Array(50), Float64Array.of(50), 10));
  await appendFile(`${prefix}.bin`, "x");
  await expect(openMegatronFiles(prefix)).rejects.toThrow(
    "short.idx: its sequences have 100 bytes, the data file has 101",
  );
  await truncate(`${prefix}.bin`, 100);
  const files = await openMegatronFiles(prefix);
  await truncate(`${prefix}.bin`, 60);
  expect(() => files.source.read(20, new Int32Array(20))).toThrow(
    "short.bin at byte 60: the file ends here",
  );
  files.close();
  await rm(`${prefix}.idx`);
  await expect(openMegatronFiles(prefix)).rejects.toThrow(
    /short\.idx: no such file, but .*short\.bin is there/,
  );
});

test("a file reader reads anywhere", async () => {
  const prefix = join(directory, "any");
  await writeMegatronFiles(prefix, tokenDataset(Uint16Array.of(1, 2, 3), Float64Array.of(3), 10));
  const reader = openFileReader(`${prefix}.bin`);
  const into = new Uint8Array(3);
  reader.read(1, into);
  expect([...into]).toEqual([0, 2, 0]);
  reader.close();
});

test("what is no regular file is refused, and a closed one reads no other's bytes", async () => {
  expect(() => openFileReader(directory)).toThrow("is a directory; give a file");
  const socket = join(directory, "socket");
  const server = createServer();
  await new Promise<void>((done) => server.listen(socket, done));
  expect(() => openFileReader(socket)).toThrow("is no regular file; give a file");
  server.close();
  const [first, second] = [join(directory, "first"), join(directory, "second")];
  await writeFile(first, "aaaa");
  await writeFile(second, "bbbb");
  const closed = openFileReader(first);
  closed.close();
  const open = openFileReader(second);
  closed.close();
  const bytes = new Uint8Array(4);
  expect(() => closed.read(0, bytes)).toThrow("first: closed");
  open.read(0, bytes);
  expect(Buffer.from(bytes).toString()).toBe("bbbb");
  open.close();
});

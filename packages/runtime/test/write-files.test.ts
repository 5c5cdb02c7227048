import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import type { FileOperation } from "@trireme/checkpoint";
import { type CheckpointStorage, writeFiles } from "@trireme/runtime";
import { fileStorage } from "@trireme/runtime/node";
import { expect, it } from "vitest";

/** Takes writes and forgets their bytes. */
function forgetful(): { storage: CheckpointStorage; operations: FileOperation[] } {
  const operations: FileOperation[] = [];
  const storage: CheckpointStorage = {
    ...fileStorage,
    execute(operation) {
      operations.push(operation);
      return Promise.resolve();
    },
  };
  return { storage, operations };
}

it("a file larger than memory is a row of writes, past 2^32 too, of which one is held at a time", async () => {
  const { storage, operations } = forgetful();
  const chunk = new Uint8Array(64 * 2 ** 20);
  let asked = 0;
  function* chunks(): Generator<Uint8Array> {
    for (; asked < 130; asked++) {
      // The one before is written by now: its memory may be used again.
      expect(operations.length).toBe(asked);
      yield chunk;
    }
  }
  const files = [{ name: "large.bin", chunks }];
  const sum = (bytes: Uint8Array, before = 0): number => before + bytes.length;
  const marked = await writeFiles(storage, "d", files, sum);
  const size = 130 * 64 * 2 ** 20;
  expect(marked).toEqual([{ name: "large.bin", size, crc32: size }]);
  const offsets = operations.flatMap((o) => (o.kind === "write" ? [o.offset] : []));
  expect(offsets).toEqual(Array.from({ length: 130 }, (_, i) => i * 64 * 2 ** 20));
  expect(operations.at(-1)).toEqual({ kind: "sync", path: "d/large.bin" });
});

it("a file in memory has the checksum of its bytes, in however many pieces it was written", async () => {
  const { storage, operations } = forgetful();
  const bytes = new Uint8Array(130 * 2 ** 20).fill(3, 1, 7).fill(5, 100 * 2 ** 20);
  const files = [
    { name: "a", bytes },
    { name: "none", bytes: new Uint8Array(0) },
    { name: "empty", chunks: () => [] },
  ];
  expect(await writeFiles(storage, "d", files, crc32)).toEqual([
    { name: "a", size: bytes.length, crc32: crc32(bytes) },
    { name: "none", size: 0, crc32: 0 },
    { name: "empty", size: 0, crc32: 0 },
  ]);
  const paths = operations.filter(({ kind }) => kind === "write").map((o) => "path" in o && o.path);
  expect(paths).toEqual(["d/a", "d/a", "d/a", "d/none", "d/empty"]);
});

it("refuses names that are none before it writes anything under them", async () => {
  const { storage, operations } = forgetful();
  const files = [{ name: "../a", bytes: new Uint8Array(1) }];
  await expect(writeFiles(storage, "d", files)).rejects.toThrow('file name "../a": use letters');
  expect(operations).toEqual([]);
});

it("a file system is written and read past 2^32, and a row of writes needs its file", async () => {
  const root = mkdtempSync(join(tmpdir(), "trireme-write-"));
  try {
    const path = join(root, "sparse");
    const far = 2 ** 33 + 5;
    const bytes = Uint8Array.of(7, 8, 9);
    await expect(fileStorage.execute({ kind: "write", path, bytes, offset: far })).rejects.toThrow(
      /^cannot write 3 bytes to .*sparse at 8589934597: ENOENT/,
    );
    await fileStorage.execute({ kind: "write", path, bytes: new Uint8Array(1) });
    await fileStorage.execute({ kind: "write", path, bytes, offset: far });
    const target = new Uint8Array(3);
    await fileStorage.read(path, far, target);
    expect(target).toEqual(bytes);
    expect(await fileStorage.files(root)).toEqual([{ name: "sparse", size: far + 3 }]);
    await expect(fileStorage.read(path, far + 1, target)).rejects.toMatchObject({
      code: "DAMAGED",
      message: `${path} ends after ${far + 3} bytes; ${far + 4} were written`,
    });
  } finally {
    rmSync(root, { recursive: true });
  }
});

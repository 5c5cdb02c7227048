import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { TriremeError } from "@trireme/core";
import { type CheckpointStorage, type Snapshot, writeFiles } from "@trireme/runtime";
import { fileStorage, fileStore } from "@trireme/runtime/node";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Fault, FaultyStorage, faults } from "./faulty-storage.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "trireme-faults-"));
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

const chunks = (step: number): Uint8Array[] =>
  [7, 0, 30].map((length) => new Uint8Array(length).fill(step));

function snapshot(step: number): Snapshot {
  return {
    step,
    files: [
      { name: "a.bin", bytes: Uint8Array.from({ length: 100 }, (_, i) => (i * step) % 251) },
      { name: "b.bin", bytes: new Uint8Array(0) },
    ],
  };
}

/** What a save of two writers, one of which streams, leaves behind. */
function expected(step: number): Record<string, string> {
  const streamed = { name: "c.bin", bytes: new Uint8Array(Buffer.concat(chunks(step))) };
  return contents({ step, files: [...snapshot(step).files, streamed] });
}

function contents({ files }: Snapshot): Record<string, string> {
  return Object.fromEntries(files.map((f) => [f.name, Buffer.from(f.bytes).toString("hex")]));
}

async function save(storage: CheckpointStorage, step: number, keep = 1): Promise<void> {
  await fileStore(root, { storage, keep }).saveShards(step, [
    (into) => writeFiles(storage, into, snapshot(step).files),
    (into) => writeFiles(storage, into, [{ name: "c.bin", chunks: () => chunks(step) }]),
  ]);
}

async function newestWhole(): Promise<number> {
  const store = fileStore(root);
  const newest = await store.newest();
  expect(contents(await store.load(newest!))).toEqual(expected(newest!));
  return newest!;
}

async function callsOf(act: (storage: FaultyStorage) => Promise<void>): Promise<number> {
  const storage = new FaultyStorage(fileStorage);
  await act(storage);
  return storage.log.length;
}

describe("a file system that", () => {
  it.each(faults)(
    "%s at any one call of a save leaves the newest complete checkpoint, and nothing half-written is taken for whole",
    async (fault: Fault) => {
      await save(fileStorage, 1);
      const calls = await callsOf((storage) => save(storage, 2));
      // 5 operations to prepare, 3 files, the marker, two renames, a removal, the looks around.
      expect(calls).toBeGreaterThanOrEqual(25);
      let [kept, replaced] = [0, 0];
      for (let at = 0; at < calls; at++) {
        rmSync(root, { recursive: true });
        await save(fileStorage, 1);
        const failed = save(new FaultyStorage(fileStorage, fault, at), 2);
        await expect(failed, `call ${at} of ${calls}`).rejects.toThrow(/EIO/);
        const newest = await newestWhole();
        expect([1, 2]).toContain(newest);
        if (newest === 1) kept++;
        else replaced++;
        // The next save clears up whatever was left.
        await save(fileStorage, 3);
        expect(await newestWhole()).toBe(3);
        expect(readdirSync(root).sort()).toEqual(["latest", "step-00000003"]);
      }
      expect(kept).toBeGreaterThan(15);
      expect(replaced).toBeGreaterThan(5);
    },
  );

  it("fails while a checkpoint is looked for or read is loud, and does no harm", async () => {
    await save(fileStorage, 1);
    const resume = async (storage: CheckpointStorage): Promise<void> => {
      const store = fileStore(root, { storage });
      expect(contents(await store.load((await store.newest())!))).toEqual(expected(1));
    };
    const calls = await callsOf(resume);
    expect(calls).toBeGreaterThan(6);
    for (let at = 0; at < calls; at++) {
      await expect(resume(new FaultyStorage(fileStorage, "fails-before", at))).rejects.toThrow(
        /EIO/,
      );
    }
    expect(await newestWhole()).toBe(1);
  });
});

it("every file is synced after its last write, and its directory after that, before it gets its name", async () => {
  const unsynced = new Set<string>();
  const renamed: string[] = [];
  const watching: CheckpointStorage = {
    ...fileStorage,
    async execute(operation) {
      if (operation.kind === "write") unsynced.add(operation.path).add(root);
      if (operation.kind === "sync") unsynced.delete(operation.path);
      if (operation.kind === "sync-directory") unsynced.delete(root);
      if (operation.kind === "rename" && operation.to.includes("step-")) {
        expect([...unsynced]).toEqual([]);
        renamed.push(operation.to);
      }
      await fileStorage.execute(operation);
    },
  };
  await save(watching, 1);
  expect(renamed).toEqual([`${root}/step-00000001`]);
});

it("a save that fails after the checkpoint is complete says so", async () => {
  await save(fileStorage, 1);
  const failing: CheckpointStorage = {
    ...fileStorage,
    execute: (operation) =>
      operation.kind === "remove" && operation.path.endsWith("step-00000001")
        ? Promise.reject(new Error("EACCES: permission denied"))
        : fileStorage.execute(operation),
  };
  await expect(save(failing, 2)).rejects.toThrow(
    "the checkpoint of step 2 is complete, but EACCES: permission denied",
  );
  expect(await newestWhole()).toBe(2);
});

it("a marker that cannot be read back is no reason to resume from its checkpoint, nor to remove it", async () => {
  await save(fileStorage, 1, 9);
  await save(fileStorage, 2, 9);
  const flaky: CheckpointStorage = {
    ...fileStorage,
    read: (path, offset, target) =>
      path.includes("step-00000002")
        ? Promise.reject(new TriremeError("DAMAGED", "EIO"))
        : fileStorage.read(path, offset, target),
  };
  expect(await fileStore(root, { storage: flaky }).steps()).toEqual([1]);
  await save(flaky, 3, 2);
  expect(readdirSync(root).sort()).toEqual(["latest", "step-00000002", "step-00000003"]);
  expect(await fileStore(root).steps()).toEqual([3, 2]);
});

it("where one of several writers fails, all are waited for and nothing of the save is left", async () => {
  let late = false;
  const store = fileStore(root);
  const failed = store.saveShards(1, [
    () => Promise.reject(new Error("host 3 is gone")),
    async (into) => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      late = true;
      return writeFiles(fileStorage, into, snapshot(1).files);
    },
  ]);
  await expect(failed).rejects.toThrow("writer 0: host 3 is gone");
  expect(late).toBe(true);
  expect(readdirSync(root)).toEqual([]);
});

import {
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  mkdirSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CheckpointStorage, Snapshot } from "@trireme/runtime";
import { executeFileOperations, fileStorage, fileStore } from "@trireme/runtime/node";
import { commitPlan } from "@trireme/checkpoint";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "trireme-store-"));
});
afterEach(() => {
  rmSync(root, { recursive: true, force: true });
});

function snapshot(step: number): Snapshot {
  return {
    step,
    files: [
      { name: "a.bin", bytes: Uint8Array.from({ length: 1000 }, (_, i) => (i * step) % 251) },
      { name: "b.json", bytes: new TextEncoder().encode(`{"step":${step}}`) },
    ],
  };
}

function sizes(s: Snapshot): Record<string, string> {
  return Object.fromEntries(s.files.map((f) => [f.name, Buffer.from(f.bytes).toString("base64")]));
}

describe("a file store", () => {
  it.each([0, -1, 1.5, Number.NaN])("refuses to keep %s saves before the first is made", (keep) => {
    expect(() => fileStore(root, { keep })).toThrow(`keep ${keep}: it is an integer of at least 1`);
  });

  it("gives back what was saved, and keeps the newest two", async () => {
    const store = fileStore(join(root, "deep", "checkpoints"));
    expect(await store.newest()).toBeUndefined();
    for (const step of [1, 2, 3]) await store.save(snapshot(step));
    expect(await store.newest()).toBe(3);
    expect(sizes(await store.load(2))).toEqual(sizes(snapshot(2)));
    expect(sizes(await store.load(3))).toEqual(sizes(snapshot(3)));
    await expect(store.load(1)).rejects.toThrow(/no complete checkpoint of step 1/);
    const names = readdirSync(join(root, "deep", "checkpoints"));
    expect(names.sort()).toEqual(["latest", "step-00000002", "step-00000003"]);
    expect(readFileSync(join(root, "deep", "checkpoints", "latest"), "utf8")).toBe(
      "step-00000003\n",
    );
  });

  it("gives back bytes whose slices are copies, as those of a Buffer are not", async () => {
    const store = fileStore(root);
    await store.save(snapshot(1));
    const [file] = (await store.load(1)).files;
    expect(file?.bytes.slice(2, 4).buffer.byteLength).toBe(2);
  });

  it("falls back to the one before when the newest lacks bytes, a file or its marker", async () => {
    const store = fileStore(root, { keep: 9 });
    for (const step of [1, 2, 3, 4]) await store.save(snapshot(step));
    truncateSync(join(root, "step-00000004", "a.bin"), 999);
    expect(await store.newest()).toBe(3);
    rmSync(join(root, "step-00000003", "b.json"));
    expect(await store.newest()).toBe(2);
    rmSync(join(root, "step-00000002", "COMPLETE"));
    expect(await store.newest()).toBe(1);
    expect(sizes(await store.load(1))).toEqual(sizes(snapshot(1)));
  });

  it("killed before any of its operations, or in the middle of a write, leaves the newest complete one readable", async () => {
    await fileStore(root).save(snapshot(1));
    const existing = readdirSync(root);
    const files = snapshot(2).files;
    const operations = commitPlan({ directory: root, step: 2, files, keep: 1, existing });
    const committed = operations.findIndex(
      (o) => o.kind === "rename" && o.to.endsWith("step-00000002"),
    );
    expect(committed).toBeGreaterThan(5);
    for (let done = 0; done <= operations.length; done++) {
      rmSync(root, { recursive: true });
      await fileStore(root).save(snapshot(1));
      await executeFileOperations(operations.slice(0, done));
      const torn = operations[done];
      if (torn?.kind === "write") {
        writeFileSync(torn.path, torn.bytes.subarray(0, torn.bytes.length / 2));
      }
      const step = done > committed ? 2 : 1;
      expect(await fileStore(root).newest()).toBe(step);
      expect(sizes(await fileStore(root).load(step))).toEqual(sizes(snapshot(step)));
      // And a save after the crash clears up.
      await fileStore(root, { keep: 1 }).save(snapshot(3));
      expect(readdirSync(root).sort()).toEqual(["latest", "step-00000003"]);
    }
  });

  it("finds a flipped byte by its checksum, and falls back to an older save of the same step", async () => {
    const store = fileStore(root, { keep: 9 });
    await store.save(snapshot(1));
    await store.save(snapshot(2));
    await store.save(snapshot(2));
    const path = join(root, "step-00000002.1", "a.bin");
    const bytes = readFileSync(path);
    bytes[500]! ^= 1;
    writeFileSync(path, bytes);
    // By its sizes it is complete.
    expect(await store.steps()).toEqual([2, 1]);
    expect(sizes(await store.load(2))).toEqual(sizes(snapshot(2)));
    await expect((await store.open(2)).verify()).rejects.toMatchObject({ code: "DAMAGED" });
    rmSync(join(root, "step-00000002"), { recursive: true });
    await expect(store.load(2)).rejects.toThrow(
      /^the checkpoint of step 2 is damaged: .*step-00000002\.1\/a\.bin has CRC-32 [0-9a-f]{8}; [0-9a-f]{8} was written$/,
    );
    expect(sizes(await store.load(1))).toEqual(sizes(snapshot(1)));
  });

  it("carries saves that are asked for at once out one after the other", async () => {
    const store = fileStore(root, { keep: 9 });
    await Promise.all([1, 2, 3].map((step) => store.save(snapshot(step))));
    expect(await store.steps()).toEqual([3, 2, 1]);
    expect(readFileSync(join(root, "latest"), "utf8")).toBe("step-00000003\n");
  });

  it("forgets the saves of later steps when told to", async () => {
    const store = fileStore(root, { keep: 9 });
    for (const step of [1, 2, 3, 4]) await store.save(snapshot(step));
    await store.discardAfter(2);
    expect(await store.steps()).toEqual([2, 1]);
    await store.save(snapshot(3));
    expect(await store.newest()).toBe(3);
  });

  it("reads files in part, and refuses names that it has not", async () => {
    const store = fileStore(root);
    await store.save(snapshot(5));
    const opened = await store.open();
    expect(opened).toMatchObject({ step: 5, name: "step-00000005" });
    expect(await opened.source("a.bin").read(10, 3)).toEqual(Uint8Array.of(50, 55, 60));
    expect(await opened.index()).toBeUndefined();
    await expect(opened.read("a.bim")).rejects.toThrow(/has no file a\.bim; did you mean a\.bin/);
    await expect(store.open(4)).rejects.toThrow("has no complete checkpoint of step 4; it has 5");
  });

  it("refuses to go on where what it saved has vanished", async () => {
    const store = fileStore(join(root, "checkpoints"));
    await store.save(snapshot(1));
    rmSync(join(root, "checkpoints"), { recursive: true });
    await expect(store.save(snapshot(2))).rejects.toThrow(
      /checkpoints no longer has step-00000001, which was saved there; was it removed, or its disk/,
    );
  });

  it.skipIf(process.platform !== "linux")(
    "says that the disk is full, and clears up what it had written",
    async () => {
      await fileStore(root).save(snapshot(1));
      const full: CheckpointStorage = {
        ...fileStorage,
        async execute(operation) {
          // The kernel's own device that is always full, in the place of the file.
          if (operation.kind === "write" && operation.path.endsWith("b.json"))
            symlinkSync("/dev/full", operation.path);
          await fileStorage.execute(operation);
        },
      };
      const failed = fileStore(root, { storage: full }).save(snapshot(2));
      await expect(failed).rejects.toThrow(
        /cannot write .*b\.json: ENOSPC: no space left on device/,
      );
      expect(readdirSync(root).sort()).toEqual(["latest", "step-00000001"]);
    },
  );

  it("says that a file system takes no writes", async () => {
    // No one may make a directory there, not even root.
    await expect(fileStore("/proc/trireme/checkpoints").save(snapshot(1))).rejects.toThrow(
      /^cannot make the directory \/proc\/trireme\/checkpoints: E/,
    );
  });

  it("is not confused by files of others in its directory", async () => {
    const store = fileStore(root);
    mkdirSync(join(root, "step-2"));
    writeFileSync(join(root, "step-00000009"), "a file, no directory");
    writeFileSync(join(root, "notes.txt"), "mine");
    await store.save(snapshot(1));
    expect(await store.newest()).toBe(1);
    expect(readFileSync(join(root, "notes.txt"), "utf8")).toBe("mine");
  });

  it("says which operation failed, on which path", async () => {
    writeFileSync(join(root, "blocked"), "a file where a directory should be");
    const store = fileStore(join(root, "blocked", "checkpoints"));
    await expect(store.save(snapshot(1))).rejects.toThrow(/^cannot .*blocked.*ENOTDIR/);
  });
});

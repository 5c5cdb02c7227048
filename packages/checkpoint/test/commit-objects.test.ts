import { expect, test } from "vitest";
import {
  type CheckpointEntry,
  type FileOperation,
  advanceSave,
  commitPhases,
  completeCheckpoints,
  startSaving,
} from "@trireme/checkpoint";
import { MemoryFileSystem } from "./memory-file-system.ts";

const directory = "runs/a";

/** An object store: an object appears whole, and lasting, when it is synced; there is no rename. */
class ObjectStore {
  readonly objects = new Map<string, Uint8Array>();
  readonly #uploads = new Map<string, number[]>();

  apply(operation: FileOperation): void {
    switch (operation.kind) {
      case "write": {
        const { path, bytes, offset = 0 } = operation;
        const upload = offset === 0 ? [] : this.#uploads.get(path)!;
        expect(upload.length).toBe(offset);
        this.#uploads.set(path, [...upload, ...bytes]);
        return;
      }
      case "sync":
        this.objects.set(operation.path, Uint8Array.from(this.#uploads.get(operation.path)!));
        this.#uploads.delete(operation.path);
        return;
      case "remove":
        for (const key of this.objects.keys()) {
          const inside = key === operation.path || key.startsWith(`${operation.path}/`);
          if (inside) this.objects.delete(key);
        }
        return;
      default:
        throw new Error(`an object store has no ${operation.kind}`);
    }
  }

  entries(): CheckpointEntry[] {
    const found = new Map<string, { name: string; size: number }[]>();
    for (const [key, bytes] of this.objects) {
      const [, name, file] = /^runs\/a\/(step-[^/]+)\/(.+)$/.exec(key) ?? [];
      if (name === undefined || file === undefined) continue;
      found.set(name, [...(found.get(name) ?? []), { name: file, size: bytes.length }]);
    }
    return [...found].map(([name, files]) => {
      const marker = this.objects.get(`${directory}/${name}/COMPLETE`);
      return { name, files, marker: marker && new TextDecoder().decode(marker) };
    });
  }

  newest(): number | undefined {
    return completeCheckpoints(this.entries())[0]?.step;
  }
}

function operations(store: ObjectStore, step: number): readonly FileOperation[] {
  const entries = store.entries();
  const complete = new Set(completeCheckpoints(entries).map(({ name }) => name));
  const existing = entries.map(({ name }) => name);
  const incomplete = existing.filter((name) => !complete.has(name));
  const options = { directory, step, keep: 1, existing, incomplete, renames: false };
  const { prepare, temporary, finish } = commitPhases(options);
  const path = `${temporary}/a.bin`;
  return [
    ...prepare,
    { kind: "write", path, bytes: new Uint8Array(3).fill(step) },
    { kind: "write", path, bytes: new Uint8Array(2).fill(step), offset: 3 },
    { kind: "sync", path },
    ...finish([{ name: "a.bin", size: 5 }]).operations,
  ];
}

test("without renames the marker commits: dying at any operation leaves the old or the new, whole", () => {
  const count = operations(new ObjectStore(), 2).length + 1;
  for (let died = 0; died <= count; died++) {
    const store = new ObjectStore();
    for (const operation of operations(store, 1)) store.apply(operation);
    const plan = operations(store, 2);
    const marked = plan.findIndex((o) => o.kind === "sync" && o.path.endsWith("/COMPLETE"));
    for (const operation of plan.slice(0, died)) store.apply(operation);
    expect(store.newest()).toBe(died > marked ? 2 : 1);
    // What was left half-written is replaced under a new name, and cleared away.
    for (const operation of operations(store, 2)) store.apply(operation);
    expect(store.newest()).toBe(2);
    expect(new Set([...store.objects.keys()].map((key) => key.split("/")[2]))).toEqual(
      new Set(["latest", completeCheckpoints(store.entries())[0]!.name]),
    );
    expect(store.objects.get(`${directory}/latest`)).toEqual(
      new TextEncoder().encode(`${completeCheckpoints(store.entries())[0]!.name}\n`),
    );
  }
});

test("what is not whole does not count among those to keep, and goes", () => {
  const existing = ["step-00000001", "step-00000002", "step-00000003"];
  const removed = (incomplete: readonly string[]): readonly string[] =>
    commitPhases({ directory, step: 4, keep: 2, existing, incomplete })
      .finish([{ name: "a", size: 1 }])
      .operations.flatMap((o) => (o.kind === "remove" ? [o.path.slice(directory.length + 1)] : []));
  expect(removed([])).toEqual(["step-00000002", "step-00000001"]);
  expect(removed(["step-00000003"])).toEqual(["step-00000001", "step-00000003"]);
});

test("the machine of an object store orders no directory and no rename", () => {
  let state = startSaving({ directory, keep: 1, renames: false });
  const events = [
    { kind: "request", step: 1 },
    { kind: "snapshot-done" },
    { kind: "listed", names: [] },
  ] as const;
  let orders: readonly { readonly kind: string }[] = [];
  for (const event of events) ({ state, orders } = advanceSave(state, event));
  expect(orders).toEqual([
    { kind: "write", step: 1, buffer: 0, writer: 0, directory: `${directory}/step-00000001` },
  ]);
});

test("a row of writes is one file, of which a crash may keep any part until it is synced", () => {
  const disk = new MemoryFileSystem();
  disk.apply({ kind: "make-directory", path: directory });
  const path = `${directory}/a`;
  disk.apply({ kind: "write", path, bytes: Uint8Array.of(1, 2, 3) });
  disk.apply({ kind: "write", path, bytes: Uint8Array.of(4, 5), offset: 3 });
  expect(disk.read(path)).toEqual(Uint8Array.of(1, 2, 3, 4, 5));
  const hole = { kind: "write", path, bytes: Uint8Array.of(1), offset: 9 } as const;
  expect(() => disk.apply(hole)).toThrow("hole");
});

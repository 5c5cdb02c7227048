import fc from "fast-check";
import { expect, test } from "vitest";
import { createRng } from "@trireme/core";
import {
  type CommitOptions,
  commitPlan,
  completeCheckpoints,
  newestComplete,
} from "@trireme/checkpoint";
import { type Luck, MemoryFileSystem } from "./memory-file-system.ts";

const directory = "runs/a";
const filesOf = (step: number) => [
  { name: "model.safetensors", bytes: new Uint8Array(40).fill(step) },
  { name: "optimizer.safetensors", bytes: new Uint8Array(80).fill(step + 1) },
  { name: "empty.json", bytes: new Uint8Array(0) },
];

const planFor = (disk: MemoryFileSystem, step: number, keep: number) =>
  commitPlan({ directory, step, files: filesOf(step), keep, existing: disk.names(directory) });

const commit = (disk: MemoryFileSystem, step: number, keep: number): void => {
  for (const operation of planFor(disk, step, keep)) disk.apply(operation);
};

/** The newest complete checkpoint, after checking every byte of it. */
function newestChecked(disk: MemoryFileSystem): number | undefined {
  const entries = disk.checkpointEntries(directory);
  const [newest] = completeCheckpoints(entries);
  expect(newestComplete(entries)).toBe(newest?.step);
  for (const { name, bytes } of newest === undefined ? [] : filesOf(newest.step)) {
    expect(disk.read(`${directory}/${newest!.name}/${name}`)).toEqual(bytes);
  }
  return newest?.step;
}

/** Nothing that was not synced survives; all of it does; or a random part, by seed. */
const lucks = (): (() => Luck)[] => [
  () => () => 0.999,
  () => () => 0,
  ...[1, 2, 3, 4].map((seed) => () => {
    const rng = createRng(seed);
    return () => rng.float();
  }),
];

test("dying before, in or after any operation leaves the old or the new checkpoint, whole", () => {
  for (const [before, step, keep] of [
    [[], 20, 1],
    [[10], 20, 1],
    [[10, 20], 20, 1],
    [[5, 10], 20, 2],
    [[30], 20, 2],
  ] as const) {
    const start = (): MemoryFileSystem => {
      const disk = new MemoryFileSystem();
      for (const old of before) commit(disk, old, 9);
      return disk.crashed(() => 0.999);
    };
    const plan = planFor(start(), step, keep);
    const renamed = plan.findIndex(({ kind }) => kind === "rename");
    const oldNewest = before.length === 0 ? undefined : Math.max(...before);
    const newNewest = Math.max(step, ...(keep === 1 ? [] : before));
    for (let died = 0; died <= plan.length; died++) {
      for (const torn of [false, true]) {
        for (const luck of lucks()) {
          const disk = start();
          for (const operation of plan.slice(0, died)) disk.apply(operation);
          if (torn && died < plan.length) disk.apply(plan[died]!, luck());
          const survivor = disk.crashed(luck());
          const newest = newestChecked(survivor);
          // Before the rename only the old is there, after its directory is synced only the new.
          const durable = died >= renamed + 2;
          const pending = died > renamed || (died === renamed && torn);
          const allowed = durable ? [newNewest] : pending ? [oldNewest, newNewest] : [oldNewest];
          expect(allowed).toContain(newest);

          // A second attempt from whatever was left succeeds and clears up.
          commit(survivor, step, keep);
          expect(newestChecked(survivor)).toBe(newNewest);
          const names = survivor.names(directory);
          expect(names.filter((name) => name.startsWith("."))).toEqual([]);
          expect(names.filter((name) => name.startsWith("step-")).length).toBeLessThanOrEqual(keep);
        }
      }
    }
  }
});

test("each sync before the rename is needed: leaving it out can lose the checkpoint", () => {
  // Guards the guard above: a file system that forgave a missing sync would prove nothing.
  const files = filesOf(1).filter(({ bytes }) => bytes.length > 0);
  const plan = commitPlan({ directory, step: 1, files, keep: 1, existing: [] });
  const last = plan.findIndex(({ kind }) => kind === "rename") + 1;
  const syncs = plan.flatMap(({ kind }, i) => (i <= last && kind.startsWith("sync") ? [i] : []));
  // Two files, the marker, the temporary directory and its parent.
  expect(syncs.length).toBe(5);
  for (const left of syncs) {
    const newest = lucks().map((luck) => {
      const disk = new MemoryFileSystem();
      for (const [i, operation] of plan.slice(0, last + 1).entries()) {
        if (i !== left) disk.apply(operation);
      }
      return newestComplete(disk.crashed(luck()).checkpointEntries(directory));
    });
    expect(newest).toContain(undefined);
  }
});

test("nothing is removed before the new checkpoint and the pointer to it are on disk", () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(50), { maxLength: 8 }),
      fc.nat(50),
      fc.integer({ min: 1, max: 4 }),
      (before, step, keep) => {
        const disk = new MemoryFileSystem();
        for (const old of before) commit(disk, old, 100);
        const plan = planFor(disk, step, keep);
        const pointed = plan.findLastIndex(({ kind }) => kind === "rename");
        expect(plan[pointed + 1]).toEqual({ kind: "sync-directory", path: directory });
        const early = plan
          .slice(0, pointed + 2)
          .flatMap((operation) => (operation.kind === "remove" ? [operation.path] : []));
        // The one exception: a leftover under the very name that is written next.
        expect(early).toEqual([expect.stringMatching(/\/\.step-\d+(\.\d+)?\.tmp$/)]);
      },
    ),
  );
});

test("a name is changed within its directory only, so that no other file system is in between", () => {
  // A rename from a temporary directory elsewhere fails: pytorch-lightning#20270.
  const disk = new MemoryFileSystem();
  for (const step of [3, 3, 4]) {
    const renames = planFor(disk, step, 1).filter((operation) => operation.kind === "rename");
    expect(renames.length).toBeGreaterThan(1);
    for (const { from, to } of renames) {
      expect([from, to].map((path) => path.slice(0, path.lastIndexOf("/")))).toEqual([
        directory,
        directory,
      ]);
    }
    commit(disk, step, 1);
  }
});

test("the pointer names the checkpoint committed last, and the newest kept are the newest there were", () => {
  const disk = new MemoryFileSystem();
  for (const step of [1, 2, 3, 4, 5]) commit(disk, step, 3);
  expect(disk.names(directory)).toEqual([
    "latest",
    "step-00000003",
    "step-00000004",
    "step-00000005",
  ]);
  expect(new TextDecoder().decode(disk.read(`${directory}/latest`))).toBe("step-00000005\n");
  // Back to an earlier step: the new one is kept beside the newest of the others.
  commit(disk, 2, 2);
  expect(disk.names(directory)).toEqual(["latest", "step-00000002", "step-00000005"]);
  expect(new TextDecoder().decode(disk.read(`${directory}/latest`))).toBe("step-00000002\n");
});

test("a second checkpoint of a step does not touch the first before it is complete", () => {
  const disk = new MemoryFileSystem();
  commit(disk, 7, 5);
  commit(disk, 7, 5);
  expect(disk.names(directory)).toEqual(["latest", "step-00000007", "step-00000007.1"]);
  expect(completeCheckpoints(disk.checkpointEntries(directory))[0]!.name).toBe("step-00000007.1");
  commit(disk, 7, 1);
  expect(disk.names(directory)).toEqual(["latest", "step-00000007.2"]);
});

test("files of the user's own are left alone", () => {
  const disk = new MemoryFileSystem();
  commit(disk, 1, 1);
  for (const name of ["notes.txt", ".hidden.tmp", "step-3", "step-00000003.01", "step-000000003"]) {
    disk.apply({ kind: "write", path: `${directory}/${name}`, bytes: new Uint8Array(1) });
  }
  commit(disk, 2, 1);
  expect(disk.names(directory)).toEqual([
    ".hidden.tmp",
    "latest",
    "notes.txt",
    "step-000000003",
    "step-00000002",
    "step-00000003.01",
    "step-3",
  ]);
});

const file = (name: string) => ({ name, bytes: new Uint8Array(1) });

test("options that make no sense are refused with the value and the rule", () => {
  const good: CommitOptions = { directory, step: 1, files: filesOf(1), keep: 1, existing: [] };
  const plan = (change: Partial<CommitOptions>) => () => commitPlan({ ...good, ...change });
  expect(plan({ step: -1 })).toThrow("step -1 is not a non-negative integer");
  expect(plan({ step: 0.5 })).toThrow("step 0.5");
  expect(plan({ keep: 0 })).toThrow("keep 0: at least the new checkpoint is kept");
  expect(plan({ files: [] })).toThrow("has no files");
  expect(plan({ directory: "" })).toThrow('use "."');
  expect(plan({ files: [file("a"), file("a")] })).toThrow("two files are named a");
  expect(plan({ files: [file("COMPLETE")] })).toThrow("COMPLETE is the marker's name");
  for (const name of ["", ".", "../a", "a/b", "-a", "a b", "ä"]) {
    expect(plan({ files: [file(name)] })).toThrow("use letters, digits");
  }
});

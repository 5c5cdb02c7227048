import fc from "fast-check";
import { expect, test } from "vitest";
import { type Rng, createRng } from "@trireme/core";
import {
  type MarkedFile,
  type SaveEvent,
  type SaveMachineOptions,
  type SaveOrder,
  type SaveState,
  advanceSave,
  completeCheckpoints,
  crc32,
  isSaveIdle,
  startSaving,
  verifyFiles,
} from "@trireme/checkpoint";
import { MemoryFileSystem } from "./memory-file-system.ts";

const directory = "run/ckpt";
const writers = 3;

/** Carries the machine's orders out on a disk in memory, in any order that they leave open. */
class World {
  disk = new MemoryFileSystem();
  readonly buffers = new Map<number, Uint8Array>();
  /** Orders that are not carried out yet. */
  readonly open: SaveOrder[] = [];
  readonly log: SaveOrder[] = [];
  /** What a checkpoint of each step must hold. */
  readonly truth = new Map<number, number>();
  readonly requested: number[] = [];
  live = 0;
  waiting = false;
  state: SaveState;
  readonly #rng: Rng;
  readonly #failing: number;

  constructor(options: SaveMachineOptions, rng: Rng, failing: number) {
    this.state = startSaving(options);
    this.#rng = rng;
    this.#failing = failing;
  }

  tell(event: SaveEvent): void {
    const { state, orders } = advanceSave(this.state, event);
    this.state = state;
    for (const order of orders) {
      this.log.push(order);
      if (order.kind === "resume") this.waiting = false;
      else if (order.kind !== "saved" && order.kind !== "failed") this.open.push(order);
    }
  }

  /** A training step, which changes the state, and maybe a request. */
  train(step: number, save: boolean): void {
    expect(this.waiting).toBe(false);
    this.live = step % 251;
    if (!save) return;
    this.waiting = true;
    this.truth.set(step, this.live);
    this.requested.push(step);
    this.tell({ kind: "request", step });
  }

  /** Carries one open order out; false where there is none. */
  turn(): boolean {
    const index = this.open.length === 0 ? -1 : this.#rng.integer(this.open.length);
    const [order] = index === -1 ? [] : this.open.splice(index, 1);
    if (order === undefined) return false;
    this.tell(this.#carryOut(order, this.#rng.float() < this.#failing));
    return true;
  }

  #carryOut(order: SaveOrder, fails: boolean): SaveEvent {
    const reason = "no space left on device";
    switch (order.kind) {
      case "snapshot":
        if (fails) return { kind: "snapshot-failed", reason };
        // No other save may still need this buffer; training waits, so what is live is what was asked.
        expect(this.waiting).toBe(true);
        this.buffers.set(order.buffer, new Uint8Array(30).fill(this.live));
        return { kind: "snapshot-done" };
      case "list":
        if (fails) return { kind: "operation-failed", reason };
        return { kind: "listed", names: this.disk.names(directory) };
      case "operate":
        if (fails) return { kind: "operation-failed", reason };
        this.disk.apply(order.operation);
        return { kind: "operation-done" };
      case "write": {
        const { writer } = order;
        const name = `rank-${writer}`;
        const path = `${order.directory}/${name}`;
        const bytes = this.buffers.get(order.buffer)!.slice(writer * 10, writer * 10 + 10);
        this.disk.apply({ kind: "write", path, bytes });
        if (fails) return { kind: "write-failed", writer, reason };
        this.disk.apply({ kind: "sync", path });
        const file: MarkedFile = { name, size: bytes.length, crc32: crc32(bytes) };
        return { kind: "written", writer, files: [file] };
      }
      default:
        throw new Error(`${order.kind} is no order to carry out`);
    }
  }
}

/** The newest complete checkpoint's step, after comparing its bytes with the state it was taken of. */
function newest(disk: MemoryFileSystem, truth: ReadonlyMap<number, number>): number | undefined {
  const [first] = completeCheckpoints(disk.checkpointEntries(directory));
  if (first === undefined) return undefined;
  const path = `${directory}/${first.name}`;
  const files = disk
    .names(path)
    .filter((name) => name !== "COMPLETE")
    .map((name) => ({ name, bytes: disk.read(`${path}/${name}`)! }));
  expect(files.length).toBe(writers);
  for (const { bytes } of files) expect([...bytes]).toEqual(Array(10).fill(truth.get(first.step)));
  const marker = new TextDecoder().decode(disk.read(`${path}/COMPLETE`));
  expect(verifyFiles(marker, files)).toEqual({ ok: true });
  return first.step;
}

function simulate(o: { seed: number; buffers: number; failing: number; turns: number }): void {
  const rng = createRng(o.seed);
  const world = new World({ directory, keep: 2, writers, buffers: o.buffers }, rng, o.failing);
  let step = 0;
  let lastSaved: number | undefined;
  let seen = 0;
  for (let turn = 0; turn < o.turns || !isSaveIdle(world.state); turn++) {
    if (turn < o.turns && !world.waiting && rng.integer(3) === 0)
      world.train(++step, rng.integer(2) === 0);
    else world.turn();
    // What is reported as durable survives any crash from now on, until something newer is.
    for (; seen < world.log.length; seen++) {
      const order = world.log[seen]!;
      if (order.kind === "saved" || (order.kind === "failed" && order.durable)) {
        lastSaved = order.step;
      }
    }
    const survivor = newest(
      world.disk.crashed(() => rng.float()),
      world.truth,
    );
    if (lastSaved !== undefined) expect(survivor).toBeGreaterThanOrEqual(lastSaved);
    if (survivor !== undefined) expect(world.requested).toContain(survivor);
  }
  expect(world.waiting).toBe(false);
  expect(world.open).toEqual([]);
  const ended = world.log.flatMap((order) =>
    order.kind === "saved" || order.kind === "failed" ? [order.step] : [],
  );
  // Each request ends once; saves finish in the order they were asked for.
  expect(ended.toSorted((a, b) => a - b)).toEqual(world.requested);
  if (o.failing === 0) {
    expect(ended).toEqual(world.requested);
    const names = world.disk.names(directory).filter((name) => name.startsWith("step-"));
    expect(names.length).toBe(Math.min(2, ended.length));
  }
}

test("whatever the timing, what is durable is what training had when it asked, and stays", () => {
  fc.assert(
    fc.property(fc.nat(), fc.constantFrom(1, 2, 3), (seed, buffers) => {
      simulate({ seed, buffers, failing: 0, turns: 120 });
    }),
    { numRuns: 40 },
  );
});

test("with a disk that fails at any operation, failed saves are reported and older ones stay", () => {
  fc.assert(
    fc.property(fc.nat(), fc.constantFrom(1, 2), (seed, buffers) => {
      simulate({ seed, buffers, failing: 0.05, turns: 120 });
    }),
    { numRuns: 40 },
  );
});

const kinds = (orders: readonly SaveOrder[]): string[] => orders.map(({ kind }) => kind);

/** Carries all orders out until nothing is open. */
function settle(world: World): void {
  while (world.turn());
}

test("training goes on after the copy, and waits for a buffer while the save before is in flight", () => {
  const world = new World({ directory, keep: 1, writers }, createRng(1), 0);
  world.train(1, true);
  expect(kinds(world.log)).toEqual(["snapshot"]);
  world.turn();
  expect(kinds(world.log)).toEqual(["snapshot", "resume", "list"]);
  world.train(2, true);
  // The only buffer still holds step 1.
  expect(kinds(world.open)).toEqual(["list"]);
  expect(world.waiting).toBe(true);
  settle(world);
  expect(world.log.filter(({ kind }) => kind === "saved")).toEqual([
    { kind: "saved", step: 1, name: "step-00000001" },
    { kind: "saved", step: 2, name: "step-00000002" },
  ]);
});

test("with two buffers the next copy is taken while the first is written, and its commit waits", () => {
  const world = new World({ directory, keep: 1, writers, buffers: 2 }, createRng(1), 0);
  world.train(1, true);
  world.turn();
  world.train(2, true);
  expect(kinds(world.open)).toEqual(["list", "snapshot"]);
  world.tell({ kind: "snapshot-done" });
  // Nothing of step 2 is ordered of the disk before step 1 is done.
  expect(world.log.filter(({ kind }) => kind === "list").length).toBe(1);
});

test("a writer that fails makes the save fail, once every writer has reported", () => {
  const tell = (from: SaveState, ...events: readonly SaveEvent[]) => {
    let state = from;
    let orders: readonly SaveOrder[] = [];
    for (const event of events) ({ state, orders } = advanceSave(state, event));
    return { state, orders };
  };
  const done: SaveEvent = { kind: "operation-done" };
  const started = startSaving({ directory, keep: 1, writers: 2 });
  const ready = tell(started, { kind: "request", step: 5 }, { kind: "snapshot-done" });
  const writing = tell(ready.state, { kind: "listed", names: [] }, done, done, done);
  expect(kinds(writing.orders)).toEqual(["write", "write"]);
  const one = tell(writing.state, { kind: "write-failed", writer: 1, reason: "it died" });
  expect(one.orders).toEqual([]);
  const both = tell(one.state, { kind: "written", writer: 0, files: [{ name: "a", size: 1 }] });
  expect(both.orders).toEqual([
    { kind: "operate", operation: { kind: "remove", path: `${directory}/.step-00000005.tmp` } },
  ]);
  const { state, orders } = tell(both.state, done);
  expect(orders).toEqual([
    { kind: "failed", step: 5, reason: "writer 1: it died", durable: false },
  ]);
  expect(isSaveIdle(state)).toBe(true);
  const written = (writer: number): SaveEvent => ({
    kind: "written",
    writer,
    files: [{ name: "a", size: 1 }],
  });
  const same = tell(writing.state, written(0), written(1), done);
  expect(same.orders).toEqual([
    { kind: "failed", step: 5, reason: "two files are named a", durable: false },
  ]);
});

test("a writer that is none has no say, and a save of no file is no checkpoint", () => {
  let { state } = advanceSave(startSaving({ directory, keep: 1, writers: 2 }), {
    kind: "request",
    step: 5,
  });
  const tell = (event: SaveEvent): readonly SaveOrder[] => {
    const next = advanceSave(state, event);
    state = next.state;
    return next.orders;
  };
  tell({ kind: "snapshot-done" });
  tell({ kind: "listed", names: [] });
  for (let i = 0; i < 3; i++) tell({ kind: "operation-done" });
  for (const writer of [-1, 0.5, 2, Number.NaN]) {
    expect(() => tell({ kind: "written", writer, files: [] })).toThrow('"written" is not due');
  }
  tell({ kind: "written", writer: 0, files: [] });
  expect(tell({ kind: "written", writer: 1, files: [] })).toEqual([
    { kind: "operate", operation: { kind: "remove", path: `${directory}/.step-00000005.tmp` } },
  ]);
  expect(tell({ kind: "operation-done" })).toEqual([
    { kind: "failed", step: 5, reason: "no writer wrote a file", durable: false },
  ]);
});

test("events that are not due are refused", () => {
  const idle = startSaving({ directory, keep: 1 });
  for (const kind of ["snapshot-done", "operation-done"] as const) {
    expect(() => advanceSave(idle, { kind })).toThrow(`"${kind}" is not due`);
  }
  const { state } = advanceSave(idle, { kind: "request", step: 3 });
  expect(() => advanceSave(state, { kind: "request", step: 4 })).toThrow(
    '"request" is not due: save in flight none, request waiting step 3',
  );
  expect(() => advanceSave(idle, { kind: "request", step: -1 })).toThrow("step -1");
  const copied = advanceSave(state, { kind: "snapshot-done" }).state;
  expect(() => advanceSave(copied, { kind: "written", writer: 0, files: [] })).toThrow(
    '"written" is not due: save in flight that of step 3 in "list"',
  );
  expect(() => startSaving({ directory, keep: 0 })).toThrow("keep 0");
  expect(() => startSaving({ directory, keep: 1, buffers: 0 })).toThrow("buffers 0");
  expect(() => startSaving({ directory: "", keep: 1 })).toThrow('use "."');
});

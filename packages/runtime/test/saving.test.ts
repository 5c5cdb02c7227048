import {
  type RunEvent,
  type Snapshot,
  SnapshotBuffer,
  type StepInput,
  type StepResult,
  runLoop,
} from "@trireme/runtime";
import { describe, expect, it } from "vitest";
import { FakeRuntime } from "./fake-runtime.ts";
import { MemoryStore } from "./memory-store.ts";
import { smallLoader, smallRun } from "./small-run.ts";

/** Copies its state after `snapshot` has returned, into the memory given, and holds its update back. */
class LazyRuntime extends FakeRuntime {
  readonly buffers = new Set<SnapshotBuffer | undefined>();
  #copying: Promise<void> | undefined;

  snapshotSizes(): { name: string; size: number }[] {
    return [{ name: "weights.bin", size: 8 }];
  }

  override async step(input: StepInput): Promise<StepResult> {
    await this.#copying;
    return super.step(input);
  }

  override async snapshot(buffer?: SnapshotBuffer): Promise<Snapshot> {
    this.buffers.add(buffer);
    const { step } = await super.snapshot();
    const bytes = (buffer ?? new SnapshotBuffer()).take("weights.bin", 8);
    const taken = new Promise<void>((resolve) => {
      setTimeout(() => {
        new DataView(bytes.buffer).setFloat64(0, this.weight, true);
        resolve();
      }, 5);
    });
    this.#copying = taken;
    return { step, files: [{ name: "weights.bin", bytes }], taken };
  }
}

async function weights(runtime: FakeRuntime, snapshotBuffers?: number): Promise<number[]> {
  const store = new MemoryStore();
  const run = smallRun({ checkpoint: { every: 1 } });
  const loader = smallLoader();
  const more = snapshotBuffers === undefined ? {} : { snapshotBuffers };
  await runLoop({ run, runtime, loader, store, ...more });
  expect(store.mostAtOnce).toBe(1);
  expect([...store.saves.keys()]).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);
  return [...store.saves.values()].map(({ files }) =>
    new DataView(files[0]!.bytes.buffer).getFloat64(0, true),
  );
}

describe("saving", () => {
  it.each([1, 2, 3])(
    "with %i buffers saves what was there when it was asked, also where the copy is taken later",
    async (buffers) => {
      const eager = await weights(new FakeRuntime());
      expect(new Set(eager).size).toBe(10);
      const runtime = new LazyRuntime();
      expect(await weights(runtime, buffers)).toEqual(eager);
      // The same memory again and again, and no snapshot without one.
      expect(runtime.buffers.has(undefined)).toBe(false);
      expect(runtime.buffers.size).toBeLessThanOrEqual(buffers);
    },
  );

  it("with two buffers goes on while a save is in flight, with one it waits", async () => {
    const stepsMeanwhile = async (snapshotBuffers: number): Promise<number> => {
      const run = smallRun({ checkpoint: { every: 1 } });
      const runtime = new FakeRuntime();
      let written: () => void = () => undefined;
      let most = 0;
      const store = new MemoryStore();
      store.save = async ({ step }) => {
        await new Promise<void>((resolve) => (written = resolve));
        store.saves.set(step, { step, files: [] });
      };
      const done = runLoop({ run, runtime, loader: smallLoader(), store, snapshotBuffers });
      for (let saved = 0; saved < 10; saved++) {
        await new Promise((resolve) => setTimeout(resolve, 2));
        most = Math.max(most, runtime.losses.length - store.saves.size);
        written();
      }
      await new Promise((resolve) => setTimeout(resolve, 2));
      written();
      await done;
      return most;
    };
    expect(await stepsMeanwhile(1)).toBe(2);
    expect(await stepsMeanwhile(2)).toBe(3);
  });

  it("refuses a number of buffers that is none", async () => {
    const [run, runtime, loader] = [smallRun(), new FakeRuntime(), smallLoader()];
    const store = new MemoryStore();
    await expect(runLoop({ run, runtime, loader, store, snapshotBuffers: 0 })).rejects.toThrow(
      "snapshotBuffers 0: it is an integer of at least 1",
    );
  });

  it("a copy that fails fails the run as a write does", async () => {
    class Failing extends LazyRuntime {
      override async snapshot(buffer?: SnapshotBuffer): Promise<Snapshot> {
        const taken = Promise.reject(new Error("the copy engine is gone"));
        return { ...(await super.snapshot(buffer)), taken };
      }
    }
    const store = new MemoryStore();
    const run = smallRun({ checkpoint: { every: 2 } });
    const failed = runLoop({ run, runtime: new Failing(), loader: smallLoader(), store });
    await expect(failed).rejects.toThrow(
      "the checkpoint of step 2 could not be saved: the copy engine is gone",
    );
    expect(store.saves.size).toBe(0);
  });
});

describe("a buffer", () => {
  it("gives the same memory for the same name, more where it is too little", () => {
    const buffer = new SnapshotBuffer();
    const first = buffer.take("a", 100).fill(7);
    expect(buffer.take("a", 50).buffer).toBe(first.buffer);
    expect(buffer.take("a", 50)).toEqual(new Uint8Array(50).fill(7));
    expect(buffer.take("b", 100).buffer).not.toBe(first.buffer);
    expect(buffer.take("a", 101).buffer).not.toBe(first.buffer);
    expect(buffer.take("c", 0).length).toBe(0);
  });

  it("reserves what will be taken", () => {
    const buffer = new SnapshotBuffer();
    buffer.reserve([{ name: "a", size: 10 }]);
    const memory = buffer.take("a", 10).buffer;
    expect(buffer.take("a", 3).buffer).toBe(memory);
  });
});

describe("resuming", () => {
  const saved = async (): Promise<MemoryStore> => {
    const store = new MemoryStore();
    const run = smallRun({ checkpoint: { every: 2 }, steps: 6, optimizer: { learningRate: 0.1 } });
    await runLoop({ run, runtime: new FakeRuntime(), loader: smallLoader(), store });
    return store;
  };

  it("falls back past checkpoints that are damaged, and says so", async () => {
    const store = await saved();
    store.damaged.set(6, "a.bin has CRC-32 1").set(4, "b.bin is missing");
    const events: RunEvent[] = [];
    const runtime = new FakeRuntime();
    const on = (event: RunEvent): void => void events.push(event);
    await runLoop({ run: smallRun(), runtime, loader: smallLoader(), store, on });
    expect(runtime.calls[1]).toBe("restore 2");
    expect(events.slice(0, 3)).toMatchObject([
      { kind: "damaged", step: 6, reason: "a.bin has CRC-32 1" },
      { kind: "damaged", step: 4, reason: "b.bin is missing" },
      { kind: "start", from: 2 },
    ]);
  });

  it("never starts anew where all checkpoints are damaged", async () => {
    const store = await saved();
    for (const step of [2, 4, 6]) store.damaged.set(step, `${step} is torn`);
    const runtime = new FakeRuntime();
    await expect(
      runLoop({ run: smallRun(), runtime, loader: smallLoader(), store }),
    ).rejects.toThrow("no checkpoint is whole: 6 is torn; 4 is torn; 2 is torn; remove them");
    expect(runtime.calls).toEqual(["start", "stop"]);
  });
});

it("a sample is drawn every so many steps, while the ranks wait", async () => {
  const runtime = new FakeRuntime();
  const draw = (_: unknown, step: number): Promise<void> => {
    runtime.calls.push(`sample ${step}`);
    return Promise.resolve();
  };
  const [run, loader] = [smallRun(), smallLoader()];
  await runLoop({ run, runtime, loader, sample: { every: 4, draw } });
  const samples = runtime.calls.filter((call) => call.startsWith("sample"));
  expect(samples).toEqual(["sample 4", "sample 8"]);
  expect(runtime.calls.indexOf("sample 4")).toBe(runtime.calls.indexOf("step 3") + 1);
  const never = runLoop({ run, runtime, loader, sample: { every: 0, draw } });
  await expect(never).rejects.toThrow("sample.every 0: it is an integer of at least 1");
});

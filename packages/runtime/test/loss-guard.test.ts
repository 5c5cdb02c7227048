import type { Batch } from "@trireme/dataloader";
import {
  LossGuard,
  type RunEvent,
  type StepInput,
  type StepResult,
  runLoop,
} from "@trireme/runtime";
import { describe, expect, it } from "vitest";
import { FakeRuntime } from "./fake-runtime.ts";
import { MemoryStore } from "./memory-store.ts";
import { smallLoader, smallRun } from "./small-run.ts";

describe("the guard", () => {
  const settled = (options = {}): LossGuard => {
    const guard = new LossGuard({ settle: 4, ...options });
    for (let step = 0; step < 8; step++) guard.see(step, 2, 1);
    return guard;
  };

  it("takes five times the recent median for a spike, of the loss or of the gradient norm", () => {
    expect(settled().see(8, 9.9, 1).kind).toBe("healthy");
    expect(settled().see(8, 10, 1)).toMatchObject({
      kind: "spike",
      reason: "loss 10 is 5 times the recent median or more",
    });
    expect(settled().see(8, 2, 5)).toMatchObject({
      kind: "spike",
      reason: "gradient norm 5 is 5 times the recent median or more",
    });
    expect(settled({ factor: 10 }).see(8, 19, 1).kind).toBe("healthy");
  });

  it("goes back after as many spikes in a row as it is patient", () => {
    const guard = settled();
    expect(guard.see(8, 20, 1).kind).toBe("spike");
    expect(guard.see(9, 20, 1).kind).toBe("spike");
    expect(guard.see(10, 20, 1).kind).toBe("go-back");
    const recovering = settled();
    for (const [step, loss] of [20, 20, 2, 20, 20].entries()) {
      expect(recovering.see(8 + step, loss, 1).kind).not.toBe("go-back");
    }
  });

  it("goes back to before the first spike, and past the last one by the margin", () => {
    const from = (options: object, saves: readonly number[]) => {
      const guard = settled({ patience: 3, back: 0, margin: 2, ...options });
      for (const step of [8, 9, 10]) guard.see(step, 20, 1);
      const { latest, skippedAt } = guard.goBack(saves, { step: 10, skipped: 0 }, "step 10");
      // The batch read next.
      return [latest, latest + skippedAt(latest), skippedAt(latest - 1) - skippedAt(latest)];
    };
    // Eight steps done is the state before step 8.
    expect(from({}, [9, 8, 4])).toEqual([8, 13, 1]);
    expect(from({}, [9, 7, 4])).toEqual([7, 13, 1]);
    expect(from({ back: 3 }, [8, 6, 5, 1])).toEqual([6, 13, 1]);
    expect(from({ back: 4 }, [8, 6, 5, 1])).toEqual([5, 13, 1]);
    // Where none is old enough, the oldest there is.
    expect(from({ back: 100 }, [8, 6])).toEqual([6, 13, 1]);
    // The first time over the same batches, which is enough where a host computed wrongly.
    expect(from({ reattempts: 1 }, [8, 4])).toEqual([8, 8, 0]);
    expect(() => from({}, [9, 10])).toThrow(
      "step 10: no checkpoint of step 8 or before is there to go back to",
    );
  });

  it("goes back at once from what is not finite, however few steps it has seen", () => {
    expect(new LossGuard().see(0, Number.NaN, 1)).toMatchObject({
      kind: "go-back",
      reason: "loss NaN",
    });
    expect(settled().see(8, 2, Infinity)).toMatchObject({ kind: "go-back" });
  });

  it("does not compare a spike with spikes before it, nor the first steps with anything", () => {
    const guard = settled({ patience: 99, window: 8 });
    for (let step = 8; step < 30; step++) expect(guard.see(step, 20, 1).kind).toBe("spike");
    const young = new LossGuard({ settle: 4 });
    expect([9, 1, 1, 40].map((loss, step) => young.see(step, loss, 1).kind)).toEqual(
      Array.from({ length: 4 }, () => "healthy"),
    );
  });

  it("refuses numbers that make no sense", () => {
    expect(() => new LossGuard({ factor: 1 })).toThrow("factor 1: it is above 1; 5 is usual");
    expect(() => new LossGuard({ margin: 0 })).toThrow("margin 0: it is an integer of at least 1");
    expect(() => new LossGuard({ patience: 0 })).toThrow(
      "patience 0: it is an integer of at least 1",
    );
    expect(() => new LossGuard({ settle: 9, window: 8 })).toThrow(
      "settle 9 is above window 8; use 8",
    );
  });
});

/** Whose loss is high for some batches, whatever the weights. */
class SpikingRuntime extends FakeRuntime {
  readonly batches: number[] = [];
  readonly #bad: (batch: Batch) => number;

  constructor(bad: (batch: Batch) => number) {
    super();
    this.#bad = bad;
  }

  override async step(input: StepInput): Promise<StepResult> {
    this.batches.push(input.batch.step);
    const result = await super.step(input);
    return { ...result, loss: result.loss * this.#bad(input.batch) };
  }
}

const guard = { settle: 3, patience: 3, back: 0, margin: 1 };
const from6to8 = ({ step }: Batch): number => (step >= 6 && step <= 8 ? 1e3 : 1);

describe("a run under guard", () => {
  it("goes back to the checkpoint before the spike, past the batches since, and goes on", async () => {
    const store = new MemoryStore();
    const runtime = new SpikingRuntime(from6to8);
    const run = smallRun({ checkpoint: { every: 1, keep: 20 } });
    const events: RunEvent[] = [];
    const on = (event: RunEvent): void => void events.push(event);
    const loader = smallLoader();
    const summary = await runLoop({ run, runtime, loader, store, guard, on });
    expect(summary).toMatchObject({ reason: "done", step: 10 });
    expect(runtime.batches).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13]);
    expect(runtime.calls).toContain("restore 6");
    const told = events.filter(({ kind }) => kind === "spike" || kind === "rollback");
    expect(told).toMatchObject([
      { kind: "spike", step: 6 },
      { kind: "spike", step: 7 },
      { kind: "rollback", step: 8, to: 6, skipped: 4 },
    ]);
    // Those of steps 7 and 8 of the first attempt are gone, and taken again.
    expect([...store.saves.keys()]).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10]);

    // The same as a run whose data never had those batches.
    const clean = new SpikingRuntime(() => 1);
    const skipping = smallLoader();
    const without = { ...skipping, batch: (s: number) => skipping.batch(s < 6 ? s : s + 4) };
    await runLoop({ run, runtime: clean, loader: without });
    expect(runtime.weight).toBe(clean.weight);
  });

  it("interrupted after it went back and resumed is the unbroken run to the bit", async () => {
    const run = smallRun({ checkpoint: { every: 3 } });
    const whole = new SpikingRuntime(from6to8);
    const store = (): MemoryStore => new MemoryStore();
    await runLoop({ run, runtime: whole, loader: smallLoader(), store: store(), guard });

    const kept = store();
    const control = new AbortController();
    const on = (event: RunEvent): void => {
      if (event.kind === "rollback") control.abort();
    };
    const { signal } = control;
    const first = new SpikingRuntime(from6to8);
    const loader = smallLoader();
    await runLoop({ run, runtime: first, loader, store: kept, guard, on, signal });
    // It stopped where it went back to, which must not be resumed without the skip.
    const second = new SpikingRuntime(from6to8);
    await runLoop({ run, runtime: second, loader: smallLoader(), store: kept, guard });
    expect(second.batches[0]).toBe(10);
    expect(second.weight).toBe(whole.weight);
  });

  it.each([
    ["no store", undefined, "there is no store of checkpoints to go back to"],
    [
      "no checkpoint",
      new MemoryStore(),
      "no checkpoint of step 6 or before is there to go back to",
    ],
  ] as const)("with %s fails as it would have to go back", async (_, store, reason) => {
    const options = {
      run: smallRun(),
      runtime: new SpikingRuntime(from6to8),
      loader: smallLoader(),
      guard,
    };
    await expect(runLoop(store === undefined ? options : { ...options, store })).rejects.toThrow(
      new RegExp(`^step 8: loss .*: .*${reason}`),
    );
  });

  it("without a store is told of spikes all the same", async () => {
    const events: RunEvent[] = [];
    const at7 = ({ step }: Batch): number => (step === 7 ? 1e3 : 1);
    const [runtime, loader] = [new SpikingRuntime(at7), smallLoader()];
    const on = (event: RunEvent): void => void events.push(event);
    await runLoop({ run: smallRun(), runtime, loader, guard, on });
    expect(events.filter(({ kind }) => kind === "spike")).toMatchObject([{ step: 7 }]);
  });

  it("fails once it has gone back often enough", async () => {
    const run = smallRun({ checkpoint: { every: 2 } });
    const runtime = new SpikingRuntime(({ step }) => (step >= 5 ? Number.NaN : 1));
    const failed = runLoop({
      run,
      runtime,
      loader: smallLoader(),
      store: new MemoryStore(),
      guard: { ...guard, limit: 2 },
    });
    await expect(failed).rejects.toThrow(
      /^step 4: loss NaN: training diverges; lower optimizer\.learningRate/,
    );
    expect(runtime.calls.filter((call) => call === "restore 4")).toHaveLength(2);
  });
});

import { type RunEvent, learningRate, runLoop } from "@trireme/runtime";
import { describe, expect, it } from "vitest";
import { FakeRuntime } from "./fake-runtime.ts";
import { MemoryStore } from "./memory-store.ts";
import { smallLoader, smallRun } from "./small-run.ts";

describe("the run loop", () => {
  it("starts, takes every step in order and stops", async () => {
    const runtime = new FakeRuntime();
    const summary = await runLoop({ run: smallRun(), runtime, loader: smallLoader() });
    const steps = Array.from({ length: 10 }, (_, i) => `step ${i}`);
    expect(runtime.calls).toEqual(["start", ...steps, "stop"]);
    expect(summary).toMatchObject({ reason: "done", from: 0, step: 10, tokens: 10 * 4 * 16 });
    expect(summary.stepSeconds).toEqual(Array.from({ length: 10 }, () => 0.5));
    expect([summary.firstLoss, summary.lastLoss]).toEqual([runtime.losses[0], runtime.losses[9]]);
    expect(summary.validationLoss).toBeUndefined();
  });

  it("gives each step its learning rate and tells it", async () => {
    const rates: number[] = [];
    const run = smallRun();
    const on = (event: RunEvent): void => {
      if (event.kind === "step") rates.push(event.learningRate);
    };
    await runLoop({ run, runtime: new FakeRuntime(), loader: smallLoader(), on });
    expect(rates).toEqual(rates.map((_, i) => learningRate({ ...run.optimizer, steps: 10 }, i)));
    expect(new Set(rates).size).toBeGreaterThan(5);
  });

  it("evaluates every so many steps and at the end, over the same batches", async () => {
    const runtime = new FakeRuntime();
    const run = smallRun({ evaluate: { every: 4, batches: 2 } });
    const events: RunEvent[] = [];
    const summary = await runLoop({
      run,
      runtime,
      loader: smallLoader(),
      validation: smallLoader(2),
      on: (event) => events.push(event),
    });
    const evaluated = events.filter((event) => event.kind === "evaluate");
    expect(evaluated.map((event) => event.step)).toEqual([4, 8, 10]);
    expect(evaluated.map((event) => event.tokens)).toEqual([128, 128, 128]);
    expect(runtime.calls.filter((call) => call === "evaluate")).toHaveLength(6);
    expect(summary.validationLoss).toBe(evaluated[2]?.loss);
  });

  it("saves every so many steps and at the end, one save at a time", async () => {
    const store = new MemoryStore();
    const run = smallRun({ checkpoint: { every: 3 } });
    await runLoop({ run, runtime: new FakeRuntime(), loader: smallLoader(), store });
    expect([...store.saves.keys()]).toEqual([3, 6, 9, 10]);
    expect(store.mostAtOnce).toBe(1);
  });

  it("saves after so much training time, by the clock of the runtime", async () => {
    const store = new MemoryStore();
    const run = smallRun({ checkpoint: { interval: "2 s" } });
    await runLoop({ run, runtime: new FakeRuntime(), loader: smallLoader(), store });
    // Steps of half a second each.
    expect([...store.saves.keys()]).toEqual([4, 8, 10]);
  });

  it("does not save twice where the last step is due anyway", async () => {
    const store = new MemoryStore();
    const run = smallRun({ checkpoint: { every: 5 } });
    const runtime = new FakeRuntime();
    await runLoop({ run, runtime, loader: smallLoader(), store });
    expect(runtime.calls.filter((call) => call === "snapshot")).toHaveLength(2);
  });

  it("saves when asked to", async () => {
    const store = new MemoryStore();
    const asked = [false, true, false, false];
    const saveRequested = (): boolean => asked.shift() ?? false;
    const loader = smallLoader();
    await runLoop({ run: smallRun(), runtime: new FakeRuntime(), loader, store, saveRequested });
    expect([...store.saves.keys()]).toEqual([2, 10]);
  });

  it("stopped by a signal ends its step, saves and brings the ranks down", async () => {
    const store = new MemoryStore();
    const runtime = new FakeRuntime();
    const control = new AbortController();
    const on = (event: RunEvent): void => {
      if (event.kind === "step" && event.step === 3) control.abort();
    };
    const { signal } = control;
    const loader = smallLoader();
    const summary = await runLoop({ run: smallRun(), runtime, loader, store, signal, on });
    expect(summary).toMatchObject({ reason: "signal", step: 4 });
    expect([...store.saves.keys()]).toEqual([4]);
    expect(runtime.calls.at(-1)).toBe("stop");
  });

  it("stopped before its first step saves nothing", async () => {
    const store = new MemoryStore();
    const signal = AbortSignal.abort();
    const loader = smallLoader();
    const summary = await runLoop({
      run: smallRun(),
      runtime: new FakeRuntime(),
      loader,
      store,
      signal,
    });
    expect(summary).toMatchObject({ step: 0, firstLoss: Number.NaN });
    expect(store.saves.size).toBe(0);
  });

  it.each([1, 4, 9])(
    "interrupted after step %i and resumed is the unbroken run to the bit",
    async (stop) => {
      const run = smallRun();
      const whole = new FakeRuntime();
      await runLoop({ run, runtime: whole, loader: smallLoader() });

      const store = new MemoryStore();
      const control = new AbortController();
      const first = new FakeRuntime();
      const on = (event: RunEvent): void => {
        if (event.kind === "step" && event.step === stop - 1) control.abort();
      };
      const { signal } = control;
      await runLoop({ run, runtime: first, loader: smallLoader(), store, signal, on });
      const second = new FakeRuntime();
      const events: RunEvent[] = [];
      const tell = (event: RunEvent): void => void events.push(event);
      await runLoop({ run, runtime: second, loader: smallLoader(), store, on: tell });
      expect(second.calls[1]).toBe(`restore ${stop}`);
      expect(events[0]).toEqual({ kind: "start", from: stop, steps: 10, sameRun: true });
      expect([...first.losses, ...second.losses]).toEqual(whole.losses);
      expect(second.weight).toBe(whole.weight);
    },
  );

  it("resumed when all steps are done takes none and saves none", async () => {
    const store = new MemoryStore();
    const run = smallRun();
    await runLoop({ run, runtime: new FakeRuntime(), loader: smallLoader(), store });
    const runtime = new FakeRuntime();
    const summary = await runLoop({ run, runtime, loader: smallLoader(), store });
    expect(summary).toMatchObject({ from: 10, step: 10, reason: "done", tokens: 0 });
    expect(runtime.calls).toEqual(["start", "restore 10", "stop"]);
  });

  it("says that a checkpoint is another run's where settings changed, and goes on", async () => {
    const store = new MemoryStore();
    await runLoop({
      run: smallRun({ steps: 5 }),
      runtime: new FakeRuntime(),
      loader: smallLoader(),
      store,
    });
    const events: RunEvent[] = [];
    const on = (event: RunEvent): void => void events.push(event);
    const summary = await runLoop({
      run: smallRun(),
      runtime: new FakeRuntime(),
      loader: smallLoader(),
      store,
      on,
    });
    expect(events[0]).toMatchObject({ from: 5, sameRun: false });
    expect(summary.step).toBe(10);
  });

  it("refuses a checkpoint of another order of samples, and brings the ranks down", async () => {
    const store = new MemoryStore();
    const run = smallRun();
    await runLoop({ run, runtime: new FakeRuntime(), loader: smallLoader(1), store });
    const runtime = new FakeRuntime();
    await expect(runLoop({ run, runtime, loader: smallLoader(2), store })).rejects.toThrow(
      /seed 1 there, 2 here/,
    );
    expect(runtime.calls.at(-1)).toBe("stop");
  });

  it("refuses a checkpoint whose state is damaged", async () => {
    const store = new MemoryStore();
    const bytes = new TextEncoder().encode("{");
    store.saves.set(3, { step: 3, files: [{ name: "state.json", bytes }] });
    const options = { run: smallRun(), runtime: new FakeRuntime(), loader: smallLoader(), store };
    await expect(runLoop(options)).rejects.toThrow(
      /state\.json of the checkpoint of step 3 is damaged/,
    );
    store.saves.set(3, { step: 3, files: [] });
    await expect(runLoop(options)).rejects.toThrow(/has no state\.json/);
  });

  it("fails loudly when a save fails, though it is written behind training", async () => {
    const store = new MemoryStore();
    store.failure = new Error("no space left on device");
    const run = smallRun({ checkpoint: { every: 2 } });
    const runtime = new FakeRuntime();
    const failed = runLoop({ run, runtime, loader: smallLoader(), store });
    await expect(failed).rejects.toThrow(
      /the checkpoint of step 2 could not be saved: no space left/,
    );
    expect(runtime.calls.at(-1)).toBe("stop");
  });

  it("brings the ranks down when a step fails, and passes the failure on", async () => {
    const runtime = new FakeRuntime();
    runtime.failAt = 3;
    const failed = runLoop({ run: smallRun(), runtime, loader: smallLoader() });
    await expect(failed).rejects.toThrow("rank 1 died in step 3");
    expect(runtime.calls.at(-1)).toBe("stop");
  });

  it.each([Number.NaN, Infinity])("stops when the loss is %d", async (loss) => {
    const runtime = new FakeRuntime();
    runtime.loss = loss;
    const store = new MemoryStore();
    const failed = runLoop({ run: smallRun(), runtime, loader: smallLoader(), store });
    await expect(failed).rejects.toThrow(
      /step 0: loss .*training has diverged; lower optimizer\.learningRate/,
    );
    expect(store.saves.size).toBe(0);
  });

  it("carries on without a loss where the runtime computes no numbers", async () => {
    const runtime = new FakeRuntime();
    runtime.loss = Number.NaN;
    runtime.numeric = false;
    const summary = await runLoop({ run: smallRun(), runtime, loader: smallLoader() });
    expect(summary).toMatchObject({ step: 10, lastLoss: Number.NaN });
  });

  it("calls finish while the ranks are up, and only when the steps are done", async () => {
    const runtime = new FakeRuntime();
    const finish = (): Promise<void> => {
      runtime.calls.push("finish");
      return Promise.resolve();
    };
    await runLoop({ run: smallRun({ steps: 3 }), runtime, loader: smallLoader(), finish });
    expect(runtime.calls.slice(-2)).toEqual(["finish", "stop"]);
  });
});

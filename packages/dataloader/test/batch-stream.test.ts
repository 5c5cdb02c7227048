import fc from "fast-check";
import { createRng } from "@trireme/core";
import { expect, test } from "vitest";
import {
  type Batch,
  type BatchWorker,
  type Loader,
  createLoader,
  streamBatches,
  tokenDataset,
} from "@trireme/dataloader";

const tokens = Int32Array.from({ length: 400 }, (_, i) => i);
const dataset = tokenDataset(tokens, Float64Array.of(400), 400);
const loader = (dp: number, microbatch: number): Loader =>
  createLoader({ dataset, sequence: 3, globalBatch: 12, dp, microbatch, seed: 8 });

/** Workers in this process that take their time and die, by a seed. */
function flakyWorkers(from: Loader, seed: number, dying: number) {
  const rng = createRng(seed);
  const now = { started: 0, open: 0, making: 0, most: 0 };
  const start = (): BatchWorker => {
    now.started++;
    now.open++;
    let closed = false;
    return {
      async batch(step) {
        now.making++;
        now.most = Math.max(now.most, now.making);
        for (let turns = rng.integer(4); turns > 0; turns--) await Promise.resolve();
        now.making--;
        if (rng.float() < dying) throw new Error("worker died");
        return from.batch(step);
      },
      close() {
        if (!closed) now.open--;
        closed = true;
      },
    };
  };
  return { start, now };
}

async function take(stream: AsyncIterable<Batch>, count: number): Promise<Batch[]> {
  const batches: Batch[] = [];
  if (count === 0) return batches;
  for await (const batch of stream) {
    batches.push(batch);
    if (batches.length === count) break;
  }
  return batches;
}

test("whatever the workers, the prefetch, the deaths, and the ranks a run resumes on, the batches are the same", async () => {
  const legs = fc.array(
    fc.record({
      steps: fc.nat(12),
      workers: fc.integer({ min: 1, max: 5 }),
      prefetch: fc.integer({ min: 1, max: 7 }),
      dying: fc.constantFrom(0, 0.1, 0.4),
      layout: fc.constantFrom([1, 12], [2, 3], [3, 1], [12, 1], [4, 3]),
      seed: fc.nat(),
    }),
    { minLength: 1, maxLength: 5 },
  );
  await fc.assert(
    fc.asyncProperty(legs, async (runs) => {
      const reference = loader(1, 1);
      const got: Batch[] = [];
      let state = reference.state(0);
      for (const { steps, workers, prefetch, dying, layout, seed } of runs) {
        const here = loader(layout[0], layout[1]);
        const from = here.resume(JSON.parse(JSON.stringify(state)));
        const { start, now } = flakyWorkers(here, seed, dying);
        // Forty deaths of one step in a row at 0.4 do not happen.
        got.push(
          ...(await take(streamBatches({ start, workers, from, prefetch, attempts: 40 }), steps)),
        );
        state = here.state(from + steps);
        expect(now.most).toBeLessThanOrEqual(workers);
      }
      expect(got).toEqual(got.map((_, step) => reference.batch(step)));
      const total = runs.reduce((sum, { steps }) => sum + steps, 0);
      expect(got.length).toBe(total);
    }),
    { numRuns: 60 },
  );
});

test("no more is made ahead than the prefetch allows, and all workers end with the stream", async () => {
  const made: number[] = [];
  let open = 0;
  const start = (): BatchWorker => {
    open++;
    return {
      batch: (step) => {
        made.push(step);
        return Promise.resolve(loader(1, 1).batch(step));
      },
      close: () => open--,
    };
  };
  for await (const { step } of streamBatches({
    start,
    workers: 2,
    from: 5,
    prefetch: 3,
    steps: 10,
  })) {
    // A consumer that is slow: everything that may run ahead does.
    for (let turn = 0; turn < 50; turn++) await Promise.resolve();
    expect(Math.max(...made)).toBeLessThanOrEqual(step + 2);
  }
  expect(made.sort((a, b) => a - b)).toEqual(Array.from({ length: 10 }, (_, i) => 5 + i));
  expect(open).toBe(0);
});

test("a step that fails again and again ends the stream with its reason", async () => {
  const { start, now } = flakyWorkers(loader(1, 1), 1, 1);
  await expect(take(streamBatches({ start, workers: 2, from: 3, prefetch: 2 }), 1)).rejects.toThrow(
    "step 3 failed 3 times: worker died",
  );
  expect(now.open).toBe(0);
});

test("a signal ends a stream that waits", async () => {
  const abort = new AbortController();
  let closed = 0;
  const start = (): BatchWorker => ({
    batch: () => new Promise(() => undefined),
    close: () => closed++,
  });
  const stream = take(
    streamBatches({ start, workers: 1, from: 0, prefetch: 1, signal: abort.signal }),
    1,
  );
  await Promise.resolve();
  abort.abort(new Error("enough"));
  await expect(stream).rejects.toThrow("enough");
  expect(closed).toBe(1);
});

test("counts that make no sense are refused", async () => {
  const { start } = flakyWorkers(loader(1, 1), 1, 0);
  const good = { start, workers: 1, from: 0, prefetch: 1 };
  await expect(take(streamBatches({ ...good, workers: 0 }), 1)).rejects.toThrow("workers 0");
  await expect(take(streamBatches({ ...good, prefetch: 0.5 }), 1)).rejects.toThrow("prefetch 0.5");
  await expect(take(streamBatches({ ...good, from: -1 }), 1)).rejects.toThrow("first step -1");
});

test("a worker that does not even start counts as one that died", async () => {
  let starts = 0;
  const start = (): BatchWorker => {
    if (starts++ % 2 === 0) throw new Error("no thread to be had");
    return { batch: async (step) => loader(1, 1).batch(step), close: () => undefined };
  };
  const stream = streamBatches({ start, workers: 1, from: 0, steps: 2, prefetch: 2 });
  expect((await take(stream, 2)).map(({ step }) => step)).toEqual([0, 1]);
  const never = (): BatchWorker => {
    throw new Error("no thread to be had");
  };
  await expect(
    take(streamBatches({ start: never, workers: 2, from: 0, prefetch: 2 }), 1),
  ).rejects.toThrow("step 0 failed 3 times: no thread to be had");
});

test("a number of steps that is no count is refused, not taken for none", async () => {
  for (const steps of [NaN, -1, 1.5]) {
    await expect(
      take(
        streamBatches({
          start: flakyWorkers(loader(1, 1), 0, 0).start,
          workers: 1,
          from: 0,
          prefetch: 1,
          steps,
        }),
        1,
      ),
    ).rejects.toThrow(`steps ${steps} is not a count`);
  }
});

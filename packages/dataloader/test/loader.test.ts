import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type LoaderOptions,
  createLoader,
  firstRow,
  placementOf,
  samplesOf,
  tokenDataset,
} from "@trireme/dataloader";

const dataset = (tokens: number) =>
  tokenDataset(
    Int32Array.from({ length: tokens }, (_, i) => i),
    Float64Array.of(Math.floor(tokens / 3), tokens),
    Math.max(1, tokens),
  );

/** Small loaders with every kind of remainder; globalBatch = dp · microbatch · microbatches. */
const options = fc
  .record({
    tokens: fc.integer({ min: 8, max: 200 }),
    sequence: fc.integer({ min: 1, max: 7 }),
    dp: fc.integer({ min: 1, max: 4 }),
    microbatch: fc.integer({ min: 1, max: 3 }),
    microbatches: fc.integer({ min: 1, max: 3 }),
    seed: fc.maxSafeInteger(),
  })
  .map(({ tokens, sequence, dp, microbatch, microbatches, seed }): LoaderOptions => ({
    dataset: dataset(tokens),
    sequence,
    globalBatch: dp * microbatch * microbatches,
    dp,
    microbatch,
    seed,
  }));

test("every epoch visits each sample once, whatever steps its ends fall into", () => {
  fc.assert(
    fc.property(options, (o) => {
      const loader = createLoader(o);
      const epochs = 3;
      const visited = Array.from({ length: epochs }, () => [] as number[]);
      for (let step = 0; step * o.globalBatch < epochs * loader.samplesPerEpoch; step++) {
        const plan = loader.plan(step);
        plan.samples.forEach((sample, j) => visited[plan.epochs[j]!]?.push(sample));
      }
      const all = Array.from({ length: loader.samplesPerEpoch }, (_, i) => i);
      for (const samples of visited) expect(samples.sort((a, b) => a - b)).toEqual(all);
    }),
  );
});

test("the order differs from epoch to epoch and from seed to seed", () => {
  const orders = [0, 1, 2 ** 40].flatMap((seed) => {
    const loader = createLoader({
      dataset: dataset(201),
      sequence: 2,
      globalBatch: 100,
      dp: 1,
      microbatch: 1,
      seed,
    });
    return [0, 1, 2, 3].map((step) => loader.plan(step).samples.join());
  });
  expect(new Set(orders).size).toBe(12);
});

test("a global batch is the same for every number of ranks and microbatch", () => {
  const common = { dataset: dataset(500), sequence: 3, globalBatch: 24, seed: 9 };
  const reference = createLoader({ ...common, dp: 1, microbatch: 24 });
  for (const [dp, microbatch] of [
    [1, 1],
    [2, 3],
    [3, 8],
    [24, 1],
    [12, 2],
  ] as const) {
    const loader = createLoader({ ...common, dp, microbatch });
    for (const step of [0, 3, 6, 7, 1000])
      expect(loader.batch(step)).toEqual(reference.batch(step));
  }
});

test("a row is sequence + 1 consecutive tokens from sample times sequence, across documents", () => {
  fc.assert(
    fc.property(options, fc.nat(1000), (o, step) => {
      const loader = createLoader(o);
      const { samples } = loader.plan(step);
      const { tokens, rows, width } = loader.batch(step);
      expect([rows, width]).toEqual([o.globalBatch, o.sequence + 1]);
      // The dataset's token i is i, so a row is a run that starts at the sample's first token.
      samples.forEach((sample, row) => {
        const wanted = Array.from({ length: width }, (_, i) => sample * o.sequence + i);
        expect([...tokens.subarray(row * width, (row + 1) * width)]).toEqual(wanted);
      });
    }),
  );
});

test("samples are dealt out by rank, then microbatch, then row, each once", () => {
  fc.assert(
    fc.property(options, fc.nat(50), (o, step) => {
      const plan = createLoader(o).plan(step);
      const dealt: number[] = [];
      for (let rank = 0; rank < o.dp; rank++) {
        for (let microbatch = 0; microbatch < plan.microbatches; microbatch++) {
          samplesOf(plan, rank, microbatch).forEach((sample, row) => {
            const j = firstRow(plan, rank, microbatch) + row;
            expect(placementOf(plan, j)).toEqual({ rank, microbatch, row });
            dealt.push(sample);
          });
        }
      }
      expect(dealt).toEqual([...plan.samples]);
    }),
  );
});

test("steps far beyond 2^31 samples are exact", () => {
  const o = {
    dataset: dataset(100),
    sequence: 3,
    globalBatch: 1024,
    dp: 1,
    microbatch: 1,
    seed: 0,
  };
  const loader = createLoader(o);
  const step = 2 ** 42;
  const plan = loader.plan(step);
  expect(plan.first).toBe(2 ** 52);
  expect(plan.epochs[0]).toBe(Math.floor(2 ** 52 / 33));
  expect(() => loader.plan(2 ** 43)).toThrow("step 8796093022208 is outside 0..");
});

test("a stored state resumes at its step with other ranks, twice, and after JSON", () => {
  const common = { dataset: dataset(300), sequence: 4, globalBatch: 12, seed: 5 };
  const first = createLoader({ ...common, dp: 4, microbatch: 1 });
  const second = createLoader({ ...common, dp: 2, microbatch: 3 });
  const step = second.resume(JSON.parse(JSON.stringify(first.state(71))));
  expect(step).toBe(71);
  expect(first.resume(second.state(step))).toBe(71);
  expect(second.state(step)).toEqual(first.state(71));
});

test("a state of another order is refused with all that differs", () => {
  const o = { dataset: dataset(300), sequence: 4, globalBatch: 12, seed: 5, dp: 1, microbatch: 1 };
  const state = createLoader(o).state(3);
  const resume = (change: Partial<LoaderOptions>) => () =>
    createLoader({ ...o, ...change }).resume(state);
  expect(resume({ seed: 6 })).toThrow("seed 5 there, 6 here");
  expect(resume({ sequence: 5, globalBatch: 6 })).toThrow(
    "sequence 4 there, 5 here; globalBatch 12 there, 6 here",
  );
  expect(resume({ dataset: dataset(301) })).toThrow("dataset");
  expect(() => createLoader(o).resume({ ...state, version: 2 })).toThrow("version 2");
  expect(() => createLoader(o).resume({ ...state, step: -1 })).toThrow("step -1");
  expect(() => createLoader(o).resume(null)).toThrow("version undefined");
});

test("sizes that do not fit are refused with the numbers and the nearest that do", () => {
  const o = { dataset: dataset(30), sequence: 4, globalBatch: 12, dp: 2, microbatch: 2, seed: 0 };
  const make = (change: Partial<LoaderOptions>) => () => createLoader({ ...o, ...change });
  expect(make({ globalBatch: 13 })).toThrow(
    "global batch 13 is not a multiple of dp(2) x microbatch(2) = 4; the nearest is 12",
  );
  expect(make({ globalBatch: 1 })).toThrow("the nearest is 4");
  expect(make({ sequence: 30 })).toThrow(
    "30 tokens hold no sample of sequence(30) + 1 tokens; use a sequence of at most 29",
  );
  expect(make({ dataset: dataset(1) })).toThrow("give at least 2 tokens");
  expect(make({ dataset: dataset(0) })).toThrow("0 tokens hold no sample");
  expect(make({ dp: 0 })).toThrow("dp 0 is not a positive integer");
  expect(make({ microbatch: 1.5 })).toThrow("microbatch 1.5");
  expect(make({ seed: 0.1 })).toThrow("seed 0.1");
  for (const step of [-1, 0.5, Number.NaN])
    expect(() => make({})().batch(step)).toThrow("is outside 0..");
});

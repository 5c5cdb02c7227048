import fc from "fast-check";
import { createRng } from "@trireme/core";
import { loadProgram } from "@trireme/dataloader";
import { type HostLoaderOptions, type SourceSpec, startHostLoader } from "@trireme/dataloader/node";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  type Layout,
  common,
  counts,
  globalBatch,
  plannerOf,
  readFrom,
  readSteps,
  writeSources,
} from "./host-loader-fixture.ts";

let sources: SourceSpec[] = [];
let remove = (): void => undefined;
beforeAll(async () => {
  ({ sources, remove } = await writeSources());
});
afterAll(() => remove());

const layout = fc.constantFrom<Layout>(
  { dp: 1, cp: 1, tp: 1, microbatches: 1, method: "order" },
  { dp: 2, cp: 1, tp: 2, microbatches: 2, method: "greedy" },
  { dp: 3, cp: 2, tp: 1, microbatches: 1, method: "karmarkar-karp" },
  { dp: 6, cp: 1, tp: 1, microbatches: 2, method: "order" },
  { dp: 4, cp: 2, tp: 2, microbatches: 1, method: "greedy" },
);

test("whatever ranks, hosts, prefetch, resume points and deaths, every global batch is the same", async () => {
  const one = { dp: 1, cp: 1, tp: 1, microbatches: 1, method: "order" } as const;
  const reference = await readSteps(
    { ...common, planner: plannerOf(one), sources, actors: "inline" },
    40,
  );
  const legs = fc.array(
    fc.record({
      layout,
      steps: fc.nat(8),
      sourceHosts: fc.integer({ min: 1, max: 4 }),
      prefetch: fc.integer({ min: 1, max: 4 }),
      dying: fc.constantFrom(0, 0.3),
      shadowed: fc.boolean(),
      seed: fc.nat(),
    }),
    { minLength: 1, maxLength: 5 },
  );
  let deaths = 0;
  await fc.assert(
    fc.asyncProperty(legs, async (runs) => {
      const orders: string[][] = [];
      let state: unknown;
      for (const { layout: here, steps, sourceHosts, prefetch, dying, shadowed, seed } of runs) {
        const rng = createRng(seed);
        const got = await readSteps(
          {
            ...common,
            planner: plannerOf(here),
            sources,
            actors: "inline",
            sourceHosts,
            prefetch,
            attempts: 50,
            shadows: shadowed ? [0] : [],
            ...(state === undefined ? {} : { state: JSON.parse(JSON.stringify(state)) }),
          },
          steps,
          (loader) => {
            for (const actor of loader.actors()) if (rng.float() < dying) actor.kill();
          },
        );
        orders.push(...got.orders);
        state = got.state;
        deaths += got.replaced.total;
      }
      expect(orders).toEqual(reference.orders.slice(0, orders.length));
    }),
    { numRuns: 20 },
  );
  expect(deaths).toBeGreaterThan(10);
});

test("the hosts of a run deliver together what one host would, and decide alike", async () => {
  const planner = plannerOf({ dp: 4, cp: 1, tp: 1, microbatches: 1, method: "karmarkar-karp" });
  const options = { ...common, planner, sources, actors: "inline", steps: 6 } as const;
  const whole = await startHostLoader(options);
  const hosts = await Promise.all(
    [[0, 1], [2], [3]].map((ranks) => startHostLoader({ ...options, ranks })),
  );
  for (let rank = 0; rank < 4; rank++) {
    const here = hosts[Math.max(0, rank - 1)]!;
    const [expected, got] = [whole.batches(rank), here.batches(rank)];
    for (let step = 0; step < 2; step++)
      expect((await got.next()).value).toEqual((await expected.next()).value);
  }
  for (const host of hosts) expect(host.plan(1)).toEqual(whole.plan(1));
  for (const loader of [whole, ...hosts]) loader.close();
});

test("when the world changes the loader goes on for the new one, with nothing lost or repeated", async () => {
  const one = { dp: 1, cp: 1, tp: 1, microbatches: 1, method: "order" } as const;
  const reference = await readSteps(
    { ...common, planner: plannerOf(one), sources, actors: "inline" },
    30,
  );
  const worlds = fc.array(fc.record({ layout, steps: fc.integer({ min: 1, max: 7 }) }), {
    minLength: 2,
    maxLength: 4,
  });
  await fc.assert(
    fc.asyncProperty(worlds, fc.integer({ min: 1, max: 3 }), async (list, prefetch) => {
      const [first, ...later] = list;
      const options = { ...common, sources, actors: "inline", prefetch } as const;
      const loader = await startHostLoader({ ...options, planner: plannerOf(first!.layout) });
      const orders: string[][] = [];
      for (const { layout: here, steps } of [first!, ...later]) {
        const planner = plannerOf(here);
        if (orders.length > 0) await loader.reshape(orders.length, { planner });
        orders.push(...(await readFrom(loader, planner, orders.length, steps)));
      }
      loader.close();
      await loader.done;
      expect(orders).toEqual(reference.orders.slice(0, orders.length));
    }),
    { numRuns: 15 },
  );
});

test("a world of another order of samples, and one after the end, is refused", async () => {
  const planner = plannerOf({ dp: 2, cp: 1, tp: 1, microbatches: 1, method: "order" });
  const options = { ...common, planner, sources, actors: "inline", steps: 2 } as const;
  const loader = await startHostLoader(options);
  const { spec } = planner;
  const other = loadProgram({ ...spec, globalBatch: 24 }).plan();
  await expect(loader.reshape(0, { planner: other })).rejects.toThrow(
    "a global batch of 24 cannot follow one of 12",
  );
  await expect(loader.reshape(9, { planner })).rejects.toThrow("step 9 is not kept");
  await loader.done;
  await expect(loader.reshape(0, { planner })).rejects.toThrow("the loader has ended");
  loader.close();
});

test("each epoch of each source is visited once, in another order", async () => {
  const one = { dp: 2, cp: 1, tp: 1, microbatches: 1, method: "greedy" } as const;
  const planner = plannerOf(one);
  const { orders } = await readSteps({ ...common, planner, sources, actors: "inline" }, 30);
  const drawn = orders.flat();
  expect(drawn.length).toBe(30 * globalBatch);
  for (const [source, count] of counts.entries()) {
    const ids = drawn.map((document) => Number.parseInt(document, 10));
    const own = ids.filter((id) => Math.floor(id / 100) === source + 1).map((id) => id % 100);
    const epochs: number[][] = [];
    for (let at = 0; at + count <= own.length; at += count) epochs.push(own.slice(at, at + count));
    expect(epochs.length).toBeGreaterThan(1);
    for (const epoch of epochs)
      expect([...epoch].sort((a, b) => a - b)).toEqual(Array.from({ length: count }, (_, d) => d));
    expect(new Set(epochs.map((epoch) => epoch.join())).size).toBe(epochs.length);
  }
});

test("a source that is read anywhere gets as many loaders as its weight asks for", async () => {
  const planner = plannerOf({ dp: 1, cp: 1, tp: 1, microbatches: 1, method: "order" });
  const calm = await readSteps({ ...common, planner, sources, actors: "inline" }, 20);
  const scaling = {
    sources: counts.map(() => ({ secondsPerSample: 0.05, bytesPerLoader: 1 })),
    samplesPerSecond: 100,
    headroom: 1,
    patience: 2,
    rate: 1,
    lead: 1,
  };
  const scaled = {
    ...common,
    planner,
    sources,
    actors: "inline",
    sourceHosts: 4,
    scaling,
  } as const;
  const loaders: string[] = [];
  const { orders } = await readSteps(scaled, 20, (loader) => {
    loaders.push(
      loader
        .loaders()
        .map(({ length }) => length)
        .join(),
    );
  });
  expect(orders).toEqual(calm.orders);
  // Five loaders' worth: 1, 2, 3 sixths of it with the first about to grow, in the end 3, 1, 1 fifths.
  expect(loaders[1]).toBe("2,2,3");
  expect(loaders.at(-1)).toBe("3,1,1");
});

test("options that do not fit are refused with what would", async () => {
  const planner = plannerOf({ dp: 2, cp: 2, tp: 2, microbatches: 1, method: "order" });
  const start = (change: Partial<HostLoaderOptions>) =>
    startHostLoader({ ...common, planner, sources, actors: "inline", ...change });
  await expect(start({ sources: sources.slice(1) })).rejects.toThrow(
    "sources middle, large are not those of the program: small, middle, large",
  );
  await expect(start({ prefetch: 0 })).rejects.toThrow("prefetch 0");
  await expect(start({ ranks: [9] })).rejects.toThrow("rank 9 is outside 0..7");
  await expect(start({ shadows: [1] })).rejects.toThrow("a shadow for source host 1; there are 1");
  await expect(start({ construct: { sequence: 18, method: "best-fit" } })).rejects.toThrow(
    "18 tokens does not divide into 2 x slices(2) = 4 chunks; the nearest is 20",
  );
  await expect(start({ construct: { sequence: 16, method: "concatenate" } })).rejects.toThrow(
    "give slotBytes, such as",
  );
  const tight = await start({ slotBytes: 64, ranks: [0] });
  await expect(tight.done).rejects.toThrow("a slot has 64; use slotBytes of at least");
  tight.close();
});

test("a host builds only what its ranks need, and ranks along a broadcast axis read nothing", async () => {
  const base = plannerOf({ dp: 2, cp: 1, tp: 2, microbatches: 1, method: "order" });
  const { spec } = base;
  const planner = loadProgram({ ...spec })
    .broadcastAt("tp")
    .plan();
  // Ranks 0, 1 are share 0; ranks 2, 3 share 1.
  const loader = await startHostLoader({
    ...common,
    planner,
    sources,
    actors: "inline",
    ranks: [2, 3],
    steps: 3,
  });
  expect(loader.actors().map(({ name }) => name)).toEqual(["source host 0", "data constructor 1"]);
  expect(() => loader.feed(3)).toThrow(
    "rank 3 gets its data from rank 2, as the program broadcasts along tp",
  );
  expect(() => loader.feed(0)).toThrow("rank 0 is not on this host, which has 2");
  const steps: number[] = [];
  for await (const { step, share } of loader.batches(2)) {
    expect(share).toBe(1);
    steps.push(step);
  }
  expect(steps).toEqual([0, 1, 2]);
  loader.close();
});

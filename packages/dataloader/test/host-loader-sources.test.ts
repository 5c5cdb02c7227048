import { createRng } from "@trireme/core";
import {
  type MultiSourceState,
  type Planner,
  loadProgram,
  placeTree,
  textCosts,
} from "@trireme/dataloader";
import {
  type HostLoader,
  type HostLoaderOptions,
  type SourceSpec,
  startHostLoader,
} from "@trireme/dataloader/node";
import { expect, test } from "vitest";
import { read } from "./stream-source-fixture.ts";

const module = new URL("./stream-source-fixture.ts", import.meta.url).href;
const sizes = [50, 400, 1000];
const sources: SourceSpec[] = sizes.map((options) => ({
  name: `stream ${options}`,
  module,
  options,
}));
const names = sources.map(({ name }) => name);

function plannerOf(dp: number, schedule = [{ step: 0, weights: [1, 3, 4] }]): Planner {
  const tree = placeTree([{ name: "dp", size: dp, data: "distinct" }]);
  return loadProgram({ tree, sources: names, globalBatch: 8 })
    .mix({ schedule })
    .cost(textCosts({ linear: 1, quadratic: 0 }))
    .balance("greedy")
    .plan();
}
const common = {
  sources,
  seed: 0,
  construct: { sequence: 8, method: "first-fit" },
  actors: "inline",
  attempts: 50,
} as const;

/** The documents of so many steps as [source, position, first token], in global order. */
async function steps(
  options: HostLoaderOptions,
  count: number,
  disturb: (loader: HostLoader, step: number) => void = () => undefined,
) {
  const loader = await startHostLoader(options);
  const streams = options.planner.spec.tree.places.map(({ rank }) => loader.batches(rank));
  const drawn: string[] = [];
  let next = 0;
  for (let k = 0; k < count; k++) {
    disturb(loader, k);
    const tokens: number[] = [];
    for (const stream of streams) {
      const { value } = await stream.next();
      next = value!.step + 1;
      for (const batch of value!.microbatches) tokens.push(...batch.tokens);
    }
    const plan = loader.plan(next - 1);
    // Each sample has (position mod size) + 1 as its tokens.
    const wanted = Array.from(
      plan.sources,
      (source, i) => (plan.positions[i]! % sizes[source]!) + 1,
    );
    const count0 = (list: readonly number[]): number[] => [...new Set(list)].sort((a, b) => a - b);
    expect(count0(tokens.filter((token) => token !== 0))).toEqual(count0(wanted));
    drawn.push(Array.from(plan.sources, (source, i) => `${source}:${plan.positions[i]}`).join(" "));
  }
  const state = JSON.parse(JSON.stringify(loader.state(next))) as MultiSourceState;
  const result = { drawn, state, replaced: loader.replaced(), loaders: loader.loaders() };
  loader.close();
  return result;
}

test("sources that can only be read on: deaths, shadows and resuming elsewhere change nothing", async () => {
  const calm = await steps({ ...common, planner: plannerOf(1) }, 60);
  const rng = createRng(3);
  const kill = (loader: HostLoader): void => {
    for (const actor of loader.actors()) if (rng.float() < 0.2) actor.kill();
  };
  const rare = { snapshotEvery: 10, sourceHosts: 2, shadows: [0] };
  const first = await steps({ ...common, ...rare, planner: plannerOf(2) }, 25, kill);
  const second = await steps(
    { ...common, ...rare, planner: plannerOf(4), state: first.state },
    35,
    kill,
  );
  expect([...first.drawn, ...second.drawn]).toEqual(calm.drawn);
  expect(first.replaced.total).toBeGreaterThan(3);
  expect(first.replaced.byShadow).toBeGreaterThan(0);
  expect(second.state.planner).toEqual(calm.state.planner);
});

test("a differential checkpoint replays from its last snapshot, not from the start", async () => {
  const options = { ...common, snapshotEvery: 10, planner: plannerOf(1) };
  const { state } = await steps(options, 95);
  const [name] = names.slice(-1);
  const taken = state.planner.mix.taken[2]!;
  const snapshot = state.snapshots[name!]!;
  // At most ten steps of four samples of it, and what was made ahead, lie between.
  expect(taken - snapshot.position).toBeLessThanOrEqual(4 * 12);
  expect(snapshot.position).toBeGreaterThan(300);
  const before = read.samples;
  await steps({ ...options, state }, 1);
  // One step and what is made ahead of it, after replaying three sources.
  expect(read.samples - before).toBeLessThan(8 * 20);
});

test("loaders of a source come and go with its weight while steps go on", async () => {
  const schedule = [
    { step: 0, weights: [1, 1, 0] },
    { step: 20, weights: [1, 1, 0] },
    { step: 21, weights: [0, 1, 9] },
  ];
  const planner = plannerOf(1, schedule);
  const scaling = {
    sources: sizes.map(() => ({ secondsPerSample: 0.1, bytesPerLoader: 1 })),
    samplesPerSecond: 100,
    patience: 3,
    rate: 0.5,
    lead: 3,
  };
  const calm = await steps({ ...common, planner }, 60);
  const scaled = await steps({ ...common, planner, scaling, sourceHosts: 3 }, 60);
  expect(scaled.drawn).toEqual(calm.drawn);
  // The first has lost its weight, and with it its loader; at the start the third had none of either.
  expect(scaled.loaders.map(({ length }) => length)).toEqual([0, 1, 1]);
  const early = await steps({ ...common, planner, scaling, sourceHosts: 3 }, 5);
  expect(early.loaders.map(({ length }) => length)).toEqual([1, 1, 0]);
  const rng = createRng(8);
  const killed = await steps({ ...common, planner, scaling, sourceHosts: 3 }, 60, (loader) => {
    for (const actor of loader.actors()) if (rng.float() < 0.1) actor.kill();
  });
  expect(killed.drawn).toEqual(calm.drawn);
});

test("a change of the world reads nothing again that is at hand", async () => {
  const start = read.samples;
  const loader = await startHostLoader({ ...common, planner: plannerOf(2), prefetch: 4 });
  const before = [loader.batches(0), loader.batches(1)];
  for (let step = 0; step < 3; step++) for (const stream of before) await stream.next();
  // Steps 3 to 6 are made ahead.
  while (!holds(loader, 6)) await new Promise((wake) => setTimeout(wake, 1));
  const planned = loader.plan(3);
  await loader.reshape(3, { planner: plannerOf(4) });
  const { value } = await loader.batches(3).next();
  expect(value!.step).toBe(3);
  expect(loader.plan(3).positions).toEqual(planned.positions);
  expect(loader.plan(3).shares).toBe(4);
  while (!holds(loader, 6)) await new Promise((wake) => setTimeout(wake, 1));
  // Steps 3 to 6 were planned twice, but their samples came from what the sources hold.
  expect(read.samples - start).toBeLessThanOrEqual(8 * 7);
  loader.close();
});

function holds(loader: HostLoader, step: number): boolean {
  try {
    loader.plan(step);
    return true;
  } catch {
    return false;
  }
}

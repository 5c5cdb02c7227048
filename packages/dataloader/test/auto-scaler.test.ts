import fc from "fast-check";
import {
  type AutoScalerOptions,
  autoScale,
  partitionSources,
  scaleSources,
  startScaler,
} from "@trireme/dataloader";
import { expect, test } from "vitest";

const options: AutoScalerOptions = {
  sources: [
    { secondsPerSample: 0.1, bytesPerLoader: 10 },
    { secondsPerSample: 0.02, bytesPerLoader: 20 },
  ],
  samplesPerSecond: 100,
  headroom: 1,
  rate: 0.2,
  patience: 5,
};

test("loaders come before weights rise, and go only after they have been low for a while", () => {
  let state = startScaler(options, [0.5, 0.5]);
  expect(state.loaders).toEqual([5, 1]);
  // The schedule says that source 0 will have 0.9 soon.
  const rising = autoScale(options, state, [0.5, 0.5], [0.9, 0.1]);
  expect(rising.changes).toEqual([{ source: 0, from: 5, to: 9 }]);
  ({ state } = rising);
  const history: number[] = [];
  for (let step = 0; step < 60; step++) {
    ({ state } = autoScale(options, state, [0.1, 0.9]));
    history.push(state.loaders[0]!);
  }
  // Four observations ask for fewer in vain, the fifth is heard; in the end it has what 0.1 needs.
  expect(history.slice(0, 4)).toEqual([9, 9, 9, 9]);
  expect(history[4]).toBeLessThan(9);
  expect(history.at(-1)).toBeLessThanOrEqual(2);
  expect([...history].sort((a, b) => b - a)).toEqual(history);
  expect(state.loaders[1]).toBe(2);
});

test("one odd step adds loaders but takes none away, and a source without weight ends with none", () => {
  let state = startScaler(options, [0.5, 0.5]);
  ({ state } = autoScale(options, state, [0, 1]));
  expect(state.loaders).toEqual([5, 2]);
  for (let step = 0; step < 100; step++) ({ state } = autoScale(options, state, [0, 1]));
  expect(state.loaders[0]).toBe(0);
});

test("there are always loaders enough for now, for the average and for what is ahead", () => {
  const weight = fc.double({ min: 0, max: 1, noNaN: true });
  fc.assert(
    fc.property(fc.array(fc.tuple(weight, weight), { minLength: 1, maxLength: 40 }), (pairs) => {
      let state = startScaler(options, [0.5, 0.5]);
      for (const [now, ahead] of pairs) {
        ({ state } = autoScale(options, state, [now, 1 - now], [ahead, 1 - ahead]));
        for (const share of [now, ahead])
          expect(state.loaders[0]! + 1e-9).toBeGreaterThanOrEqual(share < 1e-6 ? 0 : 10 * share);
      }
    }),
  );
  expect(() =>
    autoScale({ ...options, patience: 0 }, startScaler(options, [1, 0]), [1, 0]),
  ).toThrow("patience 0");
});

test("every loader has a process, loads are even, and few move when counts change", () => {
  const counts = fc.array(fc.nat(4), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(counts, counts, fc.integer({ min: 1, max: 6 }), (before, after, processes) => {
      const first = partitionSources({ loaders: before, processes });
      const loaders = before.map((_, source) => after[source] ?? 0);
      const next = partitionSources({ loaders, processes, before: first });
      for (const [partition, wanted] of [
        [first, before],
        [next, loaders],
      ] as const) {
        expect(partition.processesOf.map(({ length }) => length)).toEqual(wanted);
        const loads = new Float64Array(processes);
        for (const hosts of partition.processesOf) for (const host of hosts) loads[host]!++;
        expect(loads).toEqual(partition.loads);
        const mean = loads.reduce((a, b) => a + b, 0) / processes;
        // Equal loaders are dealt within one of each other, unless tolerance lets them be.
        expect(Math.max(...loads)).toBeLessThanOrEqual(Math.max(Math.ceil(mean), 1.1 * mean));
      }
      expect(first.started).toBe(before.reduce((a, b) => a + b, 0));
      const added = loaders.reduce((sum, count, s) => sum + Math.max(0, count - before[s]!), 0);
      const removed = loaders.reduce((sum, count, s) => sum + Math.max(0, before[s]! - count), 0);
      expect(next.started).toBeGreaterThanOrEqual(added);
      // What is taken away may leave others uneven; no more than that moves.
      expect(next.started).toBeLessThanOrEqual(added + removed);
    }),
  );
});

test("what was placed just now moves before what would have to start anew", () => {
  const before = partitionSources({ loaders: [1, 1, 1], processes: 4 });
  expect(partitionSources({ loaders: [3, 2, 3], processes: 4, before }).started).toBe(5);
});

test("loaders of one source go to different processes, and memory is a limit", () => {
  expect(partitionSources({ loaders: [3], processes: 3 }).processesOf).toEqual([[0, 1, 2]]);
  const packed = partitionSources({
    loaders: [1, 1, 1],
    bytes: [6, 6, 4],
    loads: [1, 1, 5],
    processes: 2,
    bytesPerProcess: 10,
  });
  const memory = [0, 0];
  packed.processesOf.forEach((hosts, s) =>
    hosts.forEach((host) => (memory[host]! += [6, 6, 4][s]!)),
  );
  expect(Math.max(...memory)).toBeLessThanOrEqual(10);
  expect(() =>
    partitionSources({ loaders: [3], bytes: [6], processes: 2, bytesPerProcess: 10 }),
  ).toThrow("a loader of source 0 needs 6 bytes, and none of 2 processes of 10 has room; use 3");
  expect(() => partitionSources({ loaders: [1], processes: 0 })).toThrow("0 processes");
  expect(() => partitionSources({ loaders: [-1], processes: 1 })).toThrow(
    "source 0 has -1 loaders",
  );
});

test("profiles and rates that are none are refused: NaN loaders would be none", () => {
  const profile = { secondsPerSample: 1, bytesPerLoader: 1 };
  const scale = (change: object, samplesPerSecond = 1) =>
    scaleSources({ sources: [{ ...profile, ...change }], weights: [1], samplesPerSecond });
  for (const secondsPerSample of [NaN, 0, -1, Infinity])
    expect(() => scale({ secondsPerSample })).toThrow(`source 0 takes ${secondsPerSample} s`);
  expect(() => scale({ bytesPerLoader: NaN })).toThrow("NaN bytes a loader");
  expect(() => scale({}, Infinity)).toThrow("Infinity samples/s");
  expect(() => scale({}, 1e12)).toThrow("source 0 would need 1200000000000 loaders");
});

test("loaders that no longer fit a process's memory move, and odd numbers are refused", () => {
  const before = { processesOf: [[0], [0]], loads: Float64Array.of(2, 0), started: 0 };
  const o = { loaders: [1, 1], processes: 2, bytes: [6, 6], bytesPerProcess: 10, before };
  // Not for their work, of which a process may have any amount here.
  expect(partitionSources({ ...o, tolerance: 9 }).processesOf).toEqual([[0], [1]]);
  expect(() => partitionSources({ ...o, tolerance: NaN })).toThrow("tolerance NaN");
  expect(() => partitionSources({ ...o, loads: [1, NaN] })).toThrow("source 1 has loads NaN");
  expect(() => partitionSources({ ...o, bytes: [1, -1] })).toThrow("source 1 has bytes -1");
});

test("thousands of sources are dealt in well under a second", () => {
  const start = process.cpuUsage().user;
  const loaders = Array<number>(12_000).fill(1);
  const { processesOf } = partitionSources({ loaders, processes: 64 });
  // 0.07 s of the processor where it was written; counted anew for every comparison it took 17.
  expect((process.cpuUsage().user - start) / 1e6).toBeLessThan(1);
  expect(processesOf.every(({ length }) => length === 1)).toBe(true);
});

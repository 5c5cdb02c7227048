import { GB, GBps, TB } from "@trireme/core";
import { expect, test } from "vitest";
import { nextWorkers, stagingPlan } from "@trireme/dataloader";

const base = {
  dataset: TB(1),
  epochs: 4,
  hosts: 16,
  sharedBandwidth: GBps(8),
  hostBandwidth: GBps(10),
  localBandwidth: GBps(5),
  localCapacity: TB(3),
  demand: GBps(2),
};

test("copying pays when shared storage is slower than training and the data is read often", () => {
  // A host gets 0.5 GB/s of the 2 it needs: 125 s an epoch against 31.25 s, after 2,000 s of copying.
  const plan = stagingPlan(base);
  expect(plan).toMatchObject({ copy: false, copyTime: 2000, sharedTime: 500, localTime: 2125 });
  expect(plan.breakEven).toBeCloseTo(2000 / 93.75, 9);
  expect(plan.reason).toBe("copying would pay after 21.3 epochs, the run has only 4");
  expect(stagingPlan({ ...base, epochs: 22 }).copy).toBe(true);
  // Each host its own shards only: a sixteenth of the copy.
  expect(stagingPlan({ ...base, sharded: true })).toMatchObject({
    copy: true,
    copyTime: 125,
    localTime: 250,
  });
});

test("it does not pay where shared storage keeps up, disks are slow, or the data does not fit", () => {
  expect(stagingPlan({ ...base, sharedBandwidth: GBps(1000) }).reason).toContain(
    "it needs 2000000000",
  );
  expect(stagingPlan({ ...base, localBandwidth: GBps(0.3), epochs: 1e6 })).toMatchObject({
    copy: false,
    breakEven: Infinity,
  });
  const small = stagingPlan({ ...base, localCapacity: GB(500), epochs: 1e6 });
  expect(small).toMatchObject({ copy: false, localTime: Infinity });
  expect(small.reason).toBe(
    "a host would copy 1000000000000 bytes, its disk has room for 500000000000",
  );
  expect(() => stagingPlan({ ...base, demand: 0 })).toThrow("demand 0 is not positive");
});

test("workers are doubled until training no longer waits, or until more do not help", () => {
  const search = (waiting: (workers: number) => number, limit: number): number[] => {
    const measured: { workers: number; waiting: number }[] = [];
    for (;;) {
      const workers = nextWorkers(measured, limit);
      if (measured.some((seen) => seen.workers === workers))
        return [...measured.map((seen) => seen.workers), workers];
      measured.push({ workers, waiting: waiting(workers) });
    }
  };
  // Five workers would do: 8 is the first power of two that does.
  expect(search((workers) => Math.max(0, 1 - workers / 5), 64)).toEqual([1, 2, 4, 8, 8]);
  // The disk is what is short.
  expect(search((workers) => (workers < 2 ? 0.6 : 0.4), 64)).toEqual([1, 2, 4, 2]);
  expect(search(() => 0, 64)).toEqual([1, 1]);
  expect(search((workers) => 1 / workers, 6)).toEqual([1, 2, 4, 6, 6]);
  expect(() => nextWorkers([], 0)).toThrow("limit 0");
});

test("hosts without a disk read from shared storage", () => {
  expect(stagingPlan({ ...base, localCapacity: 0 })).toMatchObject({
    copy: false,
    localTime: Infinity,
  });
  expect(() => stagingPlan({ ...base, localCapacity: -1 })).toThrow("localCapacity -1");
});

test("a caller who measures what is asked comes to an end, where a step back was the answer too", () => {
  const measured: { workers: number; waiting: number }[] = [];
  let last = 0;
  for (let tries = 0; tries < 20; tries++) {
    const next = nextWorkers(measured, 16);
    if (next === last) break;
    last = next;
    measured.push({ workers: next, waiting: next === 1 ? 0.5 : 0.49 });
  }
  expect(measured.map(({ workers }) => workers)).toEqual([1, 2, 1]);
  expect(() => nextWorkers([{ workers: 0, waiting: 0.5 }], 4)).toThrow("0 workers");
  expect(() => nextWorkers([{ workers: 1, waiting: NaN }], 4)).toThrow("NaN of the time waiting");
});

import {
  type Flight,
  type FlightFinding,
  analyseFlights,
  communicatorArena,
  createCommunicator,
  flightRecord,
} from "@trireme/collectives";
import { afterAll, expect, test } from "vitest";
import { type Outcome, Ranks, values } from "./ranks.ts";

const threads = new Ranks();
afterAll(() => threads.stop());

const failures = (outcomes: readonly Outcome<unknown>[]): string[] =>
  outcomes.map((o) => ("value" in o ? "returned" : `${o.code}: ${o.message}`));

test.each([1, 2, 3, 4, 5])(
  "every operation on %i ranks equals the plain loop at every size",
  async (ranks) => {
    const sizes = [0, 1, ranks - 1, ranks, 127, 4096, 40_009];
    const outcomes = await threads.run<string[]>("sweep", ranks, { argument: sizes });
    expect(values(outcomes)).toEqual(Array.from({ length: ranks }, () => []));
  },
);

test.each([1, 2, 3, 5])("variants with counts, in place and bf16 on %i ranks", async (ranks) => {
  const outcomes = await threads.run<string[]>("counted", ranks);
  expect(values(outcomes)).toEqual(Array.from({ length: ranks }, () => []));
});

test("sums have the same bits on every run and however they are cut", async () => {
  const arenas = [
    {},
    { slotBytes: 64 },
    { slotBytes: 1024, slots: 1 },
    { oneShotBytes: 0 },
    { oneShotBytes: 1e6, slotBytes: 256 },
    {},
  ];
  const runs = [];
  for (const options of arenas) {
    const memory = communicatorArena(4, options);
    runs.push(...values(await threads.run<number[]>("bits", 4, { memory, argument: 997 })));
  }
  for (const bits of runs) expect(bits).toEqual(runs[0]);
});

test("messages longer than a channel pass round a ring beside outstanding all-reduces", async () => {
  const memory = communicatorArena(4, { slotBytes: 4096, slots: 2 });
  const outcomes = values(await threads.run<number[]>("ring", 4, { memory }));
  expect(outcomes).toEqual([3, 0, 1, 2].map((from) => [from, from, 10, 10]));
});

test("groups of a mesh reduce at once, in their own order, called in different orders", async () => {
  const outcomes = values(await threads.run<number[]>("mesh", 4));
  expect(outcomes).toEqual([
    [11, 11, 101, 101, 1],
    [11, 11, 1010, 1010, 1],
    [1100, 1100, 101, 101, 0],
    [1100, 1100, 1010, 1010, 0],
  ]);
});

test("a send behind an all-reduce that cannot go on still arrives", async () => {
  const memory = communicatorArena(3, { slotBytes: 4096, slots: 2 });
  expect(values(await threads.run<number>("behind", 3, { memory }))).toEqual([8, 8, 8]);
});

test("flight records show afterwards who differed and who did not come", async () => {
  const memory = communicatorArena(3);
  const all = (): Flight[][] => [0, 1, 2].map((rank) => flightRecord(memory, rank));
  await threads.run("counts", 3, { memory });
  expect(analyseFlights(all())).toMatchObject([{ kind: "mismatch", group: 0, sequence: 2 }]);
  const [{ message }] = analyseFlights(all()) as [FlightFinding];
  expect(message).toMatch(/1025 f32/);
  expect(message).toMatch(/262144 f32/);
  const late = communicatorArena(3);
  await threads.run("late", 3, { memory: late, deadline: 0.2, argument: 600 });
  // The late rank announces nothing after the failure it finds.
  const records = [0, 1, 2].map((rank) => flightRecord(late, rank));
  expect(analyseFlights(records)).toMatchObject([{ kind: "missing", sequence: 2, ranks: [2] }]);
  expect(analyseFlights(records.map((flights) => flights.slice(0, 1)))).toEqual([]);
});

test("different counts fail on all ranks with the operation, its number, ranks and counts", async () => {
  const messages = failures(await threads.run("counts", 3));
  expect(new Set(messages).size).toBe(1);
  expect(messages[0]).toMatch(
    /^MISMATCH: all-reduce 2 of ranks 0, 1, 2: rank \d calls all-reduce of (1025|262144) f32, rank \d calls all-reduce of (1025|262144) f32$/,
  );
});

test("roots that differ fail although no rank waits for another", async () => {
  const messages = failures(await threads.run("kinds", 2));
  expect(messages).toEqual([messages[0], messages[0]]);
  expect(messages[0]).toMatch(/^MISMATCH: broadcast 1 of ranks 0, 1: rank \d calls broadcast from/);
});

test("a send and a receive of different types fail on all ranks", async () => {
  const messages = failures(await threads.run("pairs", 3));
  expect(messages).toEqual([messages[0], messages[0], messages[0]]);
  expect(messages[0]).toContain("rank 1 calls receive from 0 of 4 i32, rank 0 calls send of 4 f32");
});

test("a rank that stalls is named at the deadline, on all ranks", async () => {
  const memory = communicatorArena(3);
  const messages = failures(await threads.run("late", 3, { memory, deadline: 0.3, argument: 900 }));
  expect(messages).toEqual([messages[0], messages[0], messages[0]]);
  expect(messages[0]).toMatch(
    /^DEADLINE: all-reduce 2 of ranks 0, 1, 2: rank \d waited 3\d\d.* ms for ranks? (.*, )?2; rank 2 did not call it$/,
  );
  const [barrier, reduce] = flightRecord(memory, 0);
  expect(barrier).toMatchObject({ operation: "barrier", sequence: 1, state: "done" });
  expect(reduce).toMatchObject({ operation: "all-reduce", count: 10_000, state: "running" });
});

test("a rank that stalls for less than the deadline is waited for", async () => {
  const outcomes = await threads.run("late", 3, { deadline: 5, argument: 200 });
  expect(failures(outcomes)).toEqual(["returned", "returned", "returned"]);
});

test("a stall is told at half the deadline, once, and may still end well", async () => {
  const outcomes = values(
    await threads.run<string[]>("warned", 3, { deadline: 0.6, argument: 450 }),
  );
  expect(outcomes[2]).toEqual([]);
  for (const told of outcomes.slice(0, 2)) {
    expect(told).toHaveLength(1);
    expect(told[0]).toMatch(
      /^barrier 2 of ranks 0, 1, 2: rank \d waited 3\d\d.* ms for rank.* 2; rank 2 did not call it$/,
    );
  }
});

test("an abort is raised on all ranks with its reason", async () => {
  expect(failures(await threads.run("aborts", 3))).toEqual(
    Array.from({ length: 3 }, () => "ABORTED: rank 1 aborted: loss is NaN at step 7"),
  );
});

test("a rank that leaves fails those that wait for it at once", async () => {
  const messages = failures(await threads.run("leaves", 3));
  expect(messages[0]).toBe("returned");
  expect(messages[1]).toMatch(/^CLOSED: all-reduce 1 of ranks 0, 1, 2: rank \d waits for rank.* 0/);
  expect(messages[2]).toBe(messages[1]);
});

test("arguments that cannot be meant are refused where they are made", () => {
  const now = (): number => 0;
  expect(() => communicatorArena(0)).toThrow("ranks 0 must be an integer of at least 1");
  expect(() => communicatorArena(2, { slots: 3 })).toThrow("slots 3 must be a power of two");
  expect(() => communicatorArena(2, { slotBytes: 100 })).toThrow("slotBytes 100 must be");
  expect(() => communicatorArena(4000, { slotBytes: 2 ** 20 })).toThrow("more than 4 GiB");
  const memory = communicatorArena(1, { groups: 1 });
  const one = (more: object) => () =>
    createCommunicator({ memory, rank: 0, ranks: 1, now, ...more });
  expect(one({ ranks: 2 })).toThrow("ranks 2, but the arena was made for 1");
  expect(one({ rank: 1 })).toThrow("rank 1 must be an integer in 0..0");
  expect(one({ deadline: 0 })).toThrow("deadline 0 s must be more than 0");
  expect(one({ memory: { buffer: new ArrayBuffer(8) } })).toThrow("the memory is not shared");
  const c = createCommunicator({ memory, rank: 0, ranks: 1, now });
  expect(() => c.group([1])).toThrow("rank 1 must be an integer in 0..0");
  expect(() => c.group([0, 0])).toThrow("names a rank twice");
  c.group([0]);
  expect(() => c.group([0])).toThrow("one more than the 1 this arena holds");
  const four = new Float32Array(4);
  expect(() => c.send(four, 0)).toThrow("talks to itself");
  expect(() => c.reduceScatter(four, new Float32Array(3))).toThrow(
    "counts [3] end at 3, but the buffer has 4",
  );
  expect(() => c.allGather(four, new Int32Array(4))).toThrow("both buffers must be of one type");
  expect(() => c.allGatherV(four, four, { counts: [-1] })).toThrow(
    "must be 1 integers of at least 0",
  );
  expect(() => c.allReduce(new Float64Array(1) as never)).toThrow("use Float32Array (f32)");
  expect(() => c.scatter(undefined, four, 0)).toThrow("the root passes the whole");
  c.close();
  expect(() => c.barrier()).toThrow("rank 0 has closed this communicator");
});

test("waiting does not spin", async () => {
  // Four ranks of one process share its CPU clock; three wait for a second.
  const seconds = values(await threads.run<number>("idle", 4));
  expect(Math.max(...seconds)).toBeLessThan(0.3);
});

import { communicatorArena, flightRecord } from "@trireme/collectives";
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
  const messages = failures(
    await threads.run("late", 3, { memory, deadline: 0.3, argument: 900 }),
  );
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

test("waiting does not spin", async () => {
  // Four ranks of one process share its CPU clock; three wait for a second.
  const seconds = values(await threads.run<number>("idle", 4));
  expect(Math.max(...seconds)).toBeLessThan(0.3);
});

/** What only a run of months, or a rank that dies between two stores, comes to. */
import { type Communicator, communicatorArena } from "@trireme/collectives";
import { expect, test } from "vitest";
import {
  type ArenaLayout,
  arenaLayout,
  flightBytes,
  groupEntryBytes,
} from "../src/communicator/arena.ts";
import { Endpoint } from "../src/communicator/endpoint.ts";
import { analyseFlights } from "../src/communicator/flight-analysis.ts";
import { flightRecord } from "../src/communicator/flight-record.ts";
import { groupSlot } from "../src/communicator/group-table.ts";
import { Group } from "../src/communicator/group.ts";

const now = (): number => performance.now() / 1e3;

/** Two ranks on one thread, that have made `made` calls of each kind. */
function pair(
  made: number,
  deadline = 1,
): { words: Int32Array; ranks: Communicator[]; flights: () => ReturnType<typeof flightRecord>[] } {
  const memory = communicatorArena(2);
  const words = new Int32Array(memory.buffer);
  const layout = arenaLayout(memory);
  for (const rank of [0, 1]) words[(layout.flights + rank * flightBytes) / 4] = made;
  const ranks = [0, 1].map((rank) => {
    const endpoint = new Endpoint(memory, rank, now, deadline, {});
    return new Group(endpoint, 0, [0, 1], made | 0);
  });
  return { words, ranks, flights: () => [0, 1].map((rank) => flightRecord(memory, rank)) };
}

test.each([
  [2 ** 31 - 3, [2 ** 31 - 2, 2 ** 31 - 1, 2 ** 31, 2 ** 31 + 1, 2 ** 31 + 2]],
  // None is 0.
  [2 ** 32 - 3, [2 ** 32 - 2, 2 ** 32 - 1, 1, 2, 3]],
])("calls after call %d match, and are in the flight records", (made, numbers) => {
  const { ranks, flights } = pair(made);
  const [a, b] = ranks as [Communicator, Communicator];
  for (const [i] of numbers.entries()) {
    const data = [Float32Array.of(i), Float32Array.of(10)] as const;
    // The first cannot be over before the second has called.
    const first = a.allReduce(data[0]);
    b.allReduce(data[1]).wait();
    first.wait();
    expect(data.map(([sum]) => sum)).toEqual([i + 10, i + 10]);
    const got = new Float32Array(1);
    a.send(data[0], 1).wait();
    b.receive(got, 0).wait();
    expect(got[0]).toBe(i + 10);
  }
  for (const record of flights()) {
    const reduced = record.filter(({ operation }) => operation === "all-reduce");
    expect(reduced.map(({ sequence }) => sequence)).toEqual(numbers);
    expect(record.every(({ state }) => state === "done")).toBe(true);
    expect(record).toHaveLength(2 * numbers.length);
  }
  expect(analyseFlights(flights())).toEqual([]);
});

test("a call past 2^31 that differs, or that a rank does not make, is told with its number", () => {
  const { ranks, flights } = pair(2 ** 31 - 1, 0.02);
  const [a, b] = ranks as [Communicator, Communicator];
  const both = [a.barrier(), b.barrier()];
  for (const work of both) work.wait();
  expect(() => a.barrier().wait()).toThrow(
    /^barrier 2147483649 of ranks 0, 1: .* rank 1 did not call it$/,
  );
  expect(analyseFlights(flights())).toMatchObject([
    { kind: "missing", sequence: 2 ** 31 + 1, ranks: [1] },
  ]);
});

/** Slots of the table that are taken. */
function taken(words: Int32Array, { groupTable, groups }: ArenaLayout): number[] {
  const at = (slot: number): number => (groupTable + slot * groupEntryBytes) / 4;
  return Array.from({ length: groups }, (_, slot) => slot).filter((slot) => words[at(slot)] !== 0);
}

test("a rank that dies as it takes a group's slot holds nobody up", () => {
  const memory = communicatorArena(4);
  const layout = arenaLayout(memory);
  const words = new Int32Array(memory.buffer);
  const slot = groupSlot(words, layout, 0, [0, 2], 0);
  expect(groupSlot(words, layout, 0, [0, 2], 0)).toBe(slot);
  // Half of what names the group, as two stores one after the other would leave it.
  words[(layout.groupTable + slot * groupEntryBytes) / 4 + 1] = 0;
  expect(groupSlot(words, layout, 0, [0, 2], 0)).not.toBe(slot);
  expect(groupSlot(words, layout, 0, [0, 2], 1)).not.toBe(slot);
  expect(taken(words, layout)).toHaveLength(3);
});

test("a rank that dies as it tells why it failed is named at the deadline", () => {
  const { ranks, words } = pair(0, 0.02);
  const [a] = ranks as [Communicator];
  const work = a.barrier();
  // As `recordAbort` of rank 1 begins.
  words[8] = -2;
  expect(() => work.wait()).toThrow(
    /^rank 0 waited 20.* ms for rank 1 to say why it failed; here: barrier 1 of ranks 0, 1: rank 0 waited/,
  );
});

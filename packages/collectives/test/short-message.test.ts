/** Messages of one slot, between two ranks on one thread: nothing may have to wait. */
import {
  type Communicator,
  type SharedMemory,
  communicatorArena,
  createCommunicator,
  flightRecord,
} from "@trireme/collectives";
import { copyBytes } from "@trireme/collectives/node";
import { expect, test } from "vitest";

/** Channels of two slots of 64 bytes. */
function pair(): { memory: SharedMemory; a: Communicator; b: Communicator } {
  const memory = communicatorArena(2, { slotBytes: 64, slots: 2 });
  const now = (): number => performance.now() / 1e3;
  const rank = (r: number): Communicator =>
    createCommunicator({ memory, rank: r, ranks: 2, now, copy: copyBytes });
  return { memory, a: rank(0), b: rank(1) };
}

const numbered = (first: number, count = 16): Float32Array =>
  Float32Array.from({ length: count }, (_, i) => first + i);

test("a message of one slot is over at once where there is room, and taken at once where it is there", () => {
  const { memory, a, b } = pair();
  const sent = [a.send(numbered(0), 1), a.send(numbered(100), 1)];
  expect(sent.map((work) => work.done)).toEqual([true, true]);
  // The channel is full: the third leaves when a slot is given back.
  const third = a.send(numbered(200), 1);
  expect(third.done).toBe(false);
  const got = [new Float32Array(16), new Float32Array(16), new Float32Array(16)];
  expect(b.receive(got[0]!, 0).done).toBe(true);
  expect(third.done).toBe(true);
  expect(b.receive(got[1]!, 0).done).toBe(true);
  expect(b.receive(got[2]!, 0).done).toBe(true);
  expect(got).toEqual([numbered(0), numbered(100), numbered(200)]);
  for (const [rank, operation] of ["send", "receive"].entries()) {
    const flights = flightRecord(memory, rank);
    expect(flights.map(({ sequence }) => sequence)).toEqual([1, 2, 3]);
    for (const flight of flights) {
      expect(flight).toMatchObject({ operation, state: "done", count: 16, peer: 1 - rank });
      expect(flight.ended).toBeGreaterThanOrEqual(flight.started);
    }
  }
});

test("short and long messages, and none at all, arrive in order and bit for bit", () => {
  const { a, b } = pair();
  // Not numbers with all kinds of bits, which a copy by value might change.
  const bits = Int32Array.from({ length: 16 }, (_, i) => 0x7f800001 + i * 0x10101);
  const long = numbered(7, 40);
  const works = [
    a.send(new Float32Array(bits.buffer), 1),
    a.send(long, 1),
    a.send(new Uint16Array(0), 1),
    a.send(Uint16Array.of(1, 2, 3), 1),
  ];
  const first = new Float32Array(16);
  const second = new Float32Array(40);
  const last = new Uint16Array(3);
  const taken = [b.receive(first, 0), b.receive(second, 0)];
  taken.push(b.receive(new Uint16Array(0), 0), b.receive(last, 0));
  const all = [...works, ...taken];
  // One look at every work moves both ranks once.
  const looks = Array.from({ length: 10 }, () => all.filter((work) => !work.done).length);
  expect(looks.at(-1)).toBe(0);
  expect(new Int32Array(first.buffer)).toEqual(bits);
  expect(second).toEqual(long);
  expect(last).toEqual(Uint16Array.of(1, 2, 3));
});

test("a message that could be given or taken at once is refused after an abort", () => {
  const { a, b } = pair();
  a.send(numbered(0), 1);
  a.abort("enough");
  expect(() => a.send(numbered(1), 1)).toThrow("rank 0 aborted: enough");
  expect(() => b.receive(new Float32Array(16), 0)).toThrow("rank 0 aborted: enough");
});

test("what is there but is not what was asked for fails both ranks", () => {
  const { a, b } = pair();
  a.send(numbered(0), 1);
  const mismatch = "rank 1 calls receive from 0 of 16 i32, rank 0 calls send of 16 f32";
  expect(() => b.receive(new Int32Array(16), 0).wait()).toThrow(mismatch);
  expect(() => a.send(numbered(1), 1)).toThrow(mismatch);
});

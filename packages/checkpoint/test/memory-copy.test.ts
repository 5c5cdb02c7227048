import fc from "fast-check";
import { expect, test } from "vitest";
import { createRng } from "@trireme/core";
import {
  type CopyBuffers,
  type MemoryCopy,
  type ParallelLayout,
  backupPeers,
  beginCopy,
  defineLayout,
  emptyBuffers,
  endCopy,
  layoutRanks,
  recoverFromMemory,
  sendInIdleTime,
} from "@trireme/checkpoint";

interface Coordinates {
  readonly tp: number;
  readonly data: number;
  readonly pp: number;
}

function coordinates({ tp, cp, dp }: ParallelLayout, rank: number): Coordinates {
  const data = Math.floor(rank / tp) % (cp * dp);
  return { tp: rank % tp, data, pp: Math.floor(rank / (tp * cp * dp)) };
}

/** Whether two ranks are in one tensor-, data- or pipeline-parallel group. */
function share(a: Coordinates, b: Coordinates): boolean {
  const same = [a.tp === b.tp, a.data === b.data, a.pp === b.pp].filter(Boolean).length;
  return same >= 2;
}

function peersOf(layout: ParallelLayout, ranksPerHost: number) {
  const found = backupPeers(layout, ranksPerHost);
  if (!found.ok) throw new Error(found.reason);
  const ranks = layoutRanks(layout);
  expect([...found.peers].sort((a, b) => a - b)).toEqual(
    Array.from({ length: ranks }, (_, i) => i),
  );
  return found;
}

test("a peer is on no host of the rank's groups, so that evicting any group leaves its copy", () => {
  for (const layout of [
    // ByteRobust's jobs: table 5, 16 ranks a host.
    defineLayout({ layers: 80, tp: 8, pp: 8, dp: 32, stageLayers: Array(8).fill(10) }),
    defineLayout({ layers: 128, tp: 8, pp: 16, dp: 64 }),
    defineLayout({ layers: 4, tp: 4, pp: 2, dp: 8 }),
  ]) {
    const { peers, separation } = peersOf(layout, 16);
    expect(separation).toBe("group-host");
    const at = (rank: number): Coordinates => coordinates(layout, rank);
    for (let rank = 0; rank < peers.length; rank += 37) {
      const host = Math.floor(peers[rank]! / 16);
      for (let other = host * 16; other < host * 16 + 16; other++) {
        expect(share(at(rank), at(other))).toBe(false);
      }
    }
  }
});

test("where hosts are too few for that, the peer shares no group; with one group, only no host", () => {
  const pair = peersOf(defineLayout({ layers: 2, tp: 2, pp: 2, dp: 2 }), 4);
  expect(pair.separation).toBe("group");
  const layout = defineLayout({ layers: 2, tp: 2, pp: 2, dp: 2 });
  for (const [rank, peer] of pair.peers.entries()) {
    expect(share(coordinates(layout, rank), coordinates(layout, peer))).toBe(false);
    expect(Math.floor(rank / 4)).not.toBe(Math.floor(peer / 4));
  }
  const data = peersOf(defineLayout({ layers: 1, dp: 16 }), 8);
  expect(data.separation).toBe("host");
  const experts = peersOf(defineLayout({ layers: 2, pp: 2, dp: 16, ep: 8 }), 8);
  expect(experts.separation).toBe("group-host");
});

test("one host, or hosts that no shift fits, have no peers, and the reason says so", () => {
  const layout = defineLayout({ layers: 1, dp: 12 });
  expect(backupPeers(layout, 16)).toEqual({
    ok: false,
    reason: "all 12 ranks are on one host; a copy needs a second",
  });
  expect(backupPeers(layout, 8)).toEqual({
    ok: false,
    reason: "no shift of the 12 ranks takes each to another host of 8; fill every host",
  });
  expect(() => backupPeers(layout, 0)).toThrow("ranksPerHost 0");
});

test("whenever hosts die, some step is whole in the memory that is left", () => {
  const layout = defineLayout({ layers: 2, tp: 2, pp: 2, dp: 4 });
  const ranks = layoutRanks(layout);
  const homes = Array.from({ length: ranks }, (_, rank) => Math.floor(rank / 4));
  const { peers } = peersOf(layout, 4);
  fc.assert(
    fc.property(fc.nat(), fc.nat(3), (seed, dead) => {
      const rng = createRng(seed);
      // By rank: the copies in its own memory and in its peer's, which end at different times.
      const own = Array.from({ length: ranks }, (): CopyBuffers => emptyBuffers);
      const far = Array.from({ length: ranks }, (): CopyBuffers => emptyBuffers);
      let everywhere = -1;
      const newest = ({ whole }: CopyBuffers): number => Math.max(whole[0] ?? -1, whole[1] ?? -1);
      for (let turn = 0; turn < 150; turn++) {
        const agreed = Math.min(...own.map(newest), ...far.map(newest));
        for (let rank = 0; rank < ranks; rank++) {
          for (const side of [own, far]) {
            if (rng.integer(4) > 0) continue;
            const buffers = side[rank]!;
            if (buffers.writing !== undefined) side[rank] = endCopy(buffers);
            else side[rank] = beginCopy(buffers, newest(buffers) + 1, agreed) ?? buffers;
          }
        }
        everywhere = agreed;
        const copies = (side: CopyBuffers[], host: (rank: number) => number): MemoryCopy[] =>
          side.flatMap(({ whole }, r) =>
            whole.flatMap((step) => (step === undefined ? [] : [{ rank: r, step, host: host(r) }])),
          );
        const all = [...copies(own, (r) => homes[r]!), ...copies(far, (r) => homes[peers[r]!]!)];
        const recovery = recoverFromMemory(all, homes, new Set([dead]));
        if (agreed >= 0) expect(recovery.ok && recovery.step).toBeGreaterThanOrEqual(agreed);
        if (!recovery.ok) continue;
        const there = new Set(all.map((copy) => `${copy.rank} ${copy.step} ${copy.host}`));
        for (const [r, host] of recovery.hosts.entries()) {
          expect(host).not.toBe(dead);
          expect(there.has(`${r} ${recovery.step} ${host}`)).toBe(true);
          if (homes[r] !== dead && own[r]!.whole.includes(recovery.step))
            expect(host).toBe(homes[r]);
        }
      }
      expect(everywhere).toBeGreaterThan(0);
    }),
    { numRuns: 6 },
  );
});

test("a copy waits for the agreement, and never replaces the newest whole one", () => {
  const first = endCopy(beginCopy(emptyBuffers, 0, -1)!);
  const second = endCopy(beginCopy(first, 1, -1)!);
  expect(second.whole).toEqual([0, 1]);
  // Step 1 is whole here, but not known to be elsewhere: step 0 may still be needed.
  expect(beginCopy(second, 2, 0)).toBeUndefined();
  expect(beginCopy(second, 2, 1)).toEqual({
    whole: [undefined, 1],
    writing: { buffer: 0, step: 2 },
  });
  expect(() => beginCopy(second, 1, 1)).toThrow("step 1 is not after 1, which is copied");
  expect(() => beginCopy(beginCopy(second, 2, 1)!, 3, 1)).toThrow(
    "that of step 2 is being written",
  );
  expect(() => endCopy(second)).toThrow("no copy is being written");
});

test("what no memory has is said, with the rank", () => {
  const copies = [
    { rank: 0, step: 5, host: 0 },
    { rank: 1, step: 6, host: 1 },
  ];
  expect(recoverFromMemory(copies, [0, 1], new Set())).toEqual({
    ok: false,
    reason: "no step has a copy of every rank's state; load the newest complete checkpoint",
  });
  expect(recoverFromMemory(copies, [0, 1], new Set([1]))).toEqual({
    ok: false,
    reason: expect.stringContaining("the state of rank 1 is in no memory that is left"),
  });
  expect(() => recoverFromMemory([{ rank: 2, step: 1, host: 0 }], [0], new Set())).toThrow(
    "rank 2",
  );
});

test("chunks fill idle spans in order, inside them, each byte once", () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.double({ min: 0, max: 1, noNaN: true }), fc.nat(100)), { maxLength: 6 }),
      fc.nat(10_000),
      fc.integer({ min: 1, max: 500 }),
      fc.constantFrom(0, 0.01),
      (spans, bytes, chunk, latency) => {
        let at = 0;
        const idle = spans.map(([gap, length]) => {
          const start = at + gap;
          at = start + length / 100;
          return { start, end: at };
        });
        const { chunks, left } = sendInIdleTime({ idle, bytes, bandwidth: 1e4, latency, chunk });
        let offset = 0;
        for (const sent of chunks) {
          expect(sent.offset).toBe(offset);
          offset += sent.bytes;
          expect(sent.bytes).toBeLessThanOrEqual(chunk);
          expect(idle.some(({ start, end }) => sent.start >= start && sent.end <= end)).toBe(true);
          expect(sent.end - sent.start).toBeCloseTo(latency + sent.bytes / 1e4, 9);
        }
        expect(offset + left).toBe(bytes);
      },
    ),
  );
  const idle = [
    { start: 0, end: 1 },
    { start: 2, end: 3 },
  ];
  expect(sendInIdleTime({ idle, bytes: 150, bandwidth: 100, chunk: 80 })).toEqual({
    chunks: [
      { offset: 0, bytes: 80, start: 0, end: 0.8 },
      { offset: 80, bytes: 20, start: 0.8, end: 1 },
      { offset: 100, bytes: 50, start: 2, end: 2.5 },
    ],
    left: 0,
  });
  const options = { idle, bytes: 1, bandwidth: 1, chunk: 1 };
  expect(() => sendInIdleTime({ ...options, idle: idle.toReversed() })).toThrow("spans ascend");
  expect(() => sendInIdleTime({ ...options, chunk: 0 })).toThrow("chunk 0");
  expect(() => sendInIdleTime({ ...options, bandwidth: 0 })).toThrow("bandwidth 0");
  expect(() => sendInIdleTime({ ...options, bytes: -1 })).toThrow("bytes -1");
  expect(() => sendInIdleTime({ ...options, latency: -1 })).toThrow("latency -1");
});

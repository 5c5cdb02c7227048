import fc from "fast-check";
import { expect, test } from "vitest";
import { createRng } from "@trireme/core";
import {
  type ClockMessage,
  TimelineBuilder,
  alignClocks,
  applyClocks,
  clockMessages,
} from "@trireme/timeline";

interface TrueClock {
  readonly offset: number;
  readonly drift: number;
}

/** What a clock shows at a time. */
function shown({ offset, drift }: TrueClock, time: number): number {
  return time * (1 + drift) + offset;
}

/** Messages both ways in a chain of hosts over 100 s, of 20 us at least and now and then much more. */
function traffic(clocks: readonly TrueClock[], messages: number, seed: number): ClockMessage[] {
  const rng = createRng(seed);
  const sent: ClockMessage[] = [];
  for (let i = 0; i < messages; i++) {
    const from = rng.integer(clocks.length);
    const to =
      from === clocks.length - 1 ? from - 1 : from === 0 ? 1 : from + 2 * rng.integer(2) - 1;
    const time = rng.float() * 100;
    const delay = 20e-6 + 100e-6 * rng.float() ** 4;
    sent.push({
      from,
      to,
      sent: shown(clocks[from]!, time),
      received: shown(clocks[to]!, time + delay),
    });
  }
  return sent;
}

const trueClock = fc.record({
  offset: fc.double({ min: -1000, max: 1000, noNaN: true }),
  drift: fc.double({ min: -1e-4, max: 1e-4, noNaN: true }),
});

test("offset and drift are found to within what the messages can tell", () => {
  fc.assert(
    fc.property(fc.array(trueClock, { minLength: 2, maxLength: 5 }), fc.nat(), (others, seed) => {
      const clocks = [{ offset: 0, drift: 0 }, ...others.slice(1)];
      const found = alignClocks(traffic(clocks, 4000, seed));
      expect(found.size).toBe(clocks.length);
      clocks.forEach((clock, host) => {
        const got = found.get(host)!;
        // A hop's fastest ways take about 20 us each; how far they differ bounds the error.
        expect(got.uncertainty).toBeLessThan(host * 25e-6 + 1e-9);
        for (const time of [0, 50, 100]) {
          expect(Math.abs(shown(got, time) - shown(clock, time))).toBeLessThan(host * 5e-6 + 1e-9);
        }
      });
    }),
    { numRuns: 20 },
  );
});

test("ways of equal delay give the clocks exactly, also from a reference in the middle", () => {
  const clocks = [
    { offset: 5, drift: 2e-5 },
    { offset: 0, drift: 0 },
    { offset: -3, drift: -1e-5 },
  ];
  const messages: ClockMessage[] = [];
  for (const time of [0, 10, 20]) {
    for (const [from, to] of [
      [0, 1],
      [1, 0],
      [1, 2],
      [2, 1],
    ] as const) {
      messages.push({
        from,
        to,
        sent: shown(clocks[from]!, time),
        received: shown(clocks[to]!, time + 1e-3),
      });
    }
  }
  const found = alignClocks(messages, { reference: 1 });
  clocks.forEach((clock, host) => {
    expect(found.get(host)!.offset).toBeCloseTo(clock.offset, 6);
    expect(found.get(host)!.drift).toBeCloseTo(clock.drift, 7);
  });
});

test("aligned timelines have no receive before its send", () => {
  const clocks = [
    { offset: 0, drift: 0 },
    { offset: -7, drift: 5e-5 },
  ];
  const t = new TimelineBuilder();
  const rng = createRng(3);
  for (let k = 0; k < 200; k++) {
    const from = k % 2;
    const time = k * 0.1;
    const arrival = time + 1e-4 * (1 + rng.float());
    const base = { lane: "inter", action: `m${k}` } as const;
    const at = (
      rank: number,
      s: number,
      e: number,
    ): { rank: number; start: number; end: number } => {
      return { rank, start: shown(clocks[rank]!, s), end: shown(clocks[rank]!, e) };
    };
    const sent = t.add({ ...base, ...at(from, time, time + 5e-5), kind: "send" });
    t.add({ ...base, ...at(1 - from, time, arrival), kind: "receive", parents: [sent] });
  }
  const skewed = t.finish();
  const found = alignClocks(clockMessages(skewed, (rank) => rank));
  const aligned = applyClocks(skewed, found, (rank) => rank);
  for (const { sent, received } of clockMessages(aligned, (rank) => rank)) {
    expect(received).toBeGreaterThan(sent);
    expect(received - sent).toBeLessThan(4e-4);
  }
  expect(() => applyClocks(skewed, new Map(), (rank) => rank)).toThrow(
    "host 0 of rank 0 has no clock",
  );
});

test("hosts that only one way or nothing connects have no clock; contradictions are refused", () => {
  const one = { from: 0, to: 1, sent: 0, received: 1 };
  expect([...alignClocks([one]).keys()]).toEqual([0]);
  expect(alignClocks([one, { from: 1, to: 0, sent: 0.5, received: 0.5 }]).size).toBe(2);
  const impossible = [one, { from: 1, to: 0, sent: 3, received: 0 }];
  expect(() => alignClocks(impossible)).toThrow("hosts 0 and 1 arrive 2 s before they are sent");
  expect(() => alignClocks([{ ...one, sent: Number.NaN }])).toThrow("must be finite");
});

test("no messages give no clock, and hosts have numbers", () => {
  expect(alignClocks([]).size).toBe(0);
  expect([...alignClocks([], { reference: 3 }).keys()]).toEqual([3]);
  for (const host of [NaN, -1, 0.5]) {
    expect(() => alignClocks([{ from: host, to: 1, sent: 0, received: 1 }])).toThrow(
      `message from host ${host} to host 1: hosts are integers of at least 0`,
    );
  }
});

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  TimelineBuilder,
  chromeTracePieces,
  fromChromeTrace,
  lanes,
  spans,
  toChromeTrace,
} from "@trireme/timeline";
import { pipeline } from "./pipeline.ts";
import { contents, timelines } from "./random-timeline.ts";

interface Event {
  readonly ph: string;
  readonly name: string;
  readonly cat?: string;
  readonly pid: number;
  readonly tid: number;
  readonly ts: number;
  readonly dur: number;
  readonly args: Record<string, unknown>;
}

function read(text: string): Event[] {
  const trace: { traceEvents: Event[] } = JSON.parse(text);
  return trace.traceEvents;
}

test("each span is a complete event in microseconds; ranks and lanes are named", () => {
  const events = read(toChromeTrace(pipeline(1e-3), { name: 'a "b"' }));
  expect(events.filter((e) => e.ph === "X")).toHaveLength(8);
  expect(events.filter((e) => e.ph === "M").map((e) => [e.name, e.pid, e.tid, e.args])).toEqual(
    [0, 1].flatMap((rank) => [
      ["process_name", rank, 0, { name: `rank ${rank}` }],
      ["process_sort_index", rank, 0, { sort_index: rank }],
      ["thread_name", rank, 0, { name: "compute" }],
      ["thread_sort_index", rank, 0, { sort_index: 0 }],
    ]),
  );
  expect(events.find((e) => e.name === "1B0")).toEqual({
    ph: "X",
    name: "1B0",
    cat: "backward",
    pid: 1,
    tid: 0,
    ts: 2000,
    dur: 2000,
    args: { step: 0, stage: 1, microbatch: 0, flops: 20 },
  });
});

test("on every thread events nest, with ends computed as a reader does", () => {
  const overlapping = fc.array(
    fc.tuple(
      fc.integer({ min: 0, max: 1 }),
      fc.constantFrom(...lanes),
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.double({ min: 0, max: 0.3, noNaN: true }),
    ),
  );
  fc.assert(
    fc.property(overlapping, (all) => {
      const builder = new TimelineBuilder();
      for (const [rank, lane, start, length] of all) {
        builder.add({ rank, lane, kind: "other", action: "x", start, end: start + length });
      }
      const events = read(toChromeTrace(builder.finish())).filter((e) => e.ph === "X");
      expect(events).toHaveLength(all.length);
      for (const a of events) {
        for (const b of events) {
          if (a === b || a.pid !== b.pid || a.tid !== b.tid) continue;
          const apart = a.ts + a.dur <= b.ts || b.ts + b.dur <= a.ts;
          const inside =
            (a.ts <= b.ts && b.ts + b.dur <= a.ts + a.dur) ||
            (b.ts <= a.ts && a.ts + a.dur <= b.ts + b.dur);
          expect(apart || inside).toBe(true);
        }
      }
    }),
  );
});

test("times stay exact when a reader counts from the first event, as speedscope does", () => {
  fc.assert(
    fc.property(
      fc.array(fc.double({ min: 0, max: 1e5, noNaN: true }), { minLength: 2 }),
      (times) => {
        const sorted = times.map((time) => time / 7).sort((a, b) => a - b);
        const t = new TimelineBuilder();
        sorted.slice(1).forEach((end, i) => {
          t.add({ rank: 0, lane: "inter", kind: "send", action: "s", start: sorted[i]!, end });
        });
        const events = read(toChromeTrace(t.finish())).filter((e) => e.ph === "X");
        const first = events[0]!.ts;
        events.slice(1).forEach((event, i) => {
          expect(events[i]!.ts - first + events[i]!.dur).toBe(event.ts - first);
          // Cut to nanoseconds it is the time rounded to them.
          expect(Math.floor(event.ts * 1000 + 1e-3)).toBe(Math.round(sorted[i + 1]! * 1e9));
        });
      },
    ),
  );
});

test("a lane whose spans overlap gets a second thread with a name of its own", () => {
  const builder = new TimelineBuilder();
  const base = { rank: 0, lane: "inter", kind: "send", action: "s" } as const;
  builder.add({ ...base, start: 0, end: 2 });
  builder.add({ ...base, start: 1, end: 3 });
  const events = read(toChromeTrace(builder.finish()));
  const names = events.filter((e) => e.name === "thread_name").map((e) => e.args["name"]);
  expect(names).toEqual(["inter", "inter 2"]);
  const threads = events.filter((e) => e.ph === "X").map((e) => e.tid);
  expect(new Set(threads).size).toBe(2);
});

test("an empty timeline is a valid empty trace", () => {
  expect(read(toChromeTrace(new TimelineBuilder().finish()))).toEqual([]);
});

test("a trace is read back to the nanosecond, parents and all", () => {
  fc.assert(
    fc.property(timelines(fc.integer({ min: 0, max: 1e15 }).map((n) => n / 1e9)), (t) => {
      const back = fromChromeTrace(toChromeTrace(t));
      expect(contents(back)).toEqual(contents(t));
    }),
  );
});

test("parents on other ranks are arrows that leave their slice and end at the child's start", () => {
  const t = new TimelineBuilder();
  const a = t.add({
    rank: 0,
    lane: "compute",
    kind: "forward",
    action: "0F0",
    start: 0,
    end: 2e-6,
  });
  t.add({
    rank: 1,
    lane: "compute",
    kind: "forward",
    action: "1F0",
    start: 3e-6,
    end: 4e-6,
    parents: [a],
  });
  t.add({
    rank: 0,
    lane: "compute",
    kind: "forward",
    action: "0F1",
    start: 2e-6,
    end: 3e-6,
    parents: [a],
  });
  const arrows = read(toChromeTrace(t.finish())).filter((e) => e.cat === "dependency");
  expect(arrows.map((e) => [e.ph, e.pid, e.tid, e.ts])).toEqual([
    ["s", 0, 0, 2047 / 1024],
    ["f", 1, 0, 3],
  ]);
});

test("a trace of another tool is read with begin and end events, ranks by process", () => {
  const t = fromChromeTrace([
    { ph: "B", name: "step", pid: "a", tid: 1, ts: "10" },
    { ph: "X", name: "load", cat: "load", pid: "b", tid: 7, ts: 5, dur: 1 },
    { ph: "E", pid: "a", tid: 1, ts: 30 },
    { ph: "C", name: "memory", pid: "a", ts: 1, args: { bytes: 3 } },
  ]);
  expect([...spans(t)]).toMatchObject([
    { rank: 0, lane: "host", kind: "other", action: "step", start: 10e-6, end: 30e-6 },
    { rank: 1, lane: "host", kind: "load", action: "load", start: 5e-6, end: 6e-6 },
  ]);
});

test("a process without a rank in its name gets a number that no named one has", () => {
  const t = fromChromeTrace([
    { ph: "X", name: "a", pid: 7, tid: 1, ts: 0, dur: 1 },
    { ph: "X", name: "b", pid: 8, tid: 1, ts: 0, dur: 1 },
    { ph: "X", name: "c", pid: 9, tid: 1, ts: 0, dur: 1 },
    { ph: "M", name: "process_name", pid: 8, args: { name: "rank 0" } },
  ]);
  expect([...spans(t)].map(({ action, rank }) => [action, rank])).toEqual([
    ["a", 1],
    ["b", 0],
    ["c", 2],
  ]);
});

test("arguments of another tool that are no step, size or span of ours are passed over", () => {
  const args = {
    step: 1.5,
    stage: -2,
    microbatch: "x",
    bytes: -1,
    flops: 7,
    parents: [0, 99, "p"],
  };
  const t = fromChromeTrace([{ ph: "X", name: "a", pid: 0, tid: 0, ts: 0, dur: 1, args }]);
  expect([...spans(t)]).toMatchObject([
    { step: -1, stage: -1, microbatch: -1, bytes: 0, flops: 7, parents: [] },
  ]);
});

test("what has begun and not ended, as where a run died, lasts to the end of the trace", () => {
  const t = fromChromeTrace([
    { ph: "B", name: "step", pid: 0, tid: 1, ts: 1 },
    { ph: "B", name: "inside", pid: 0, tid: 1, ts: 2 },
    { ph: "X", name: "other", pid: 0, tid: 2, ts: 3, dur: 6 },
  ]);
  expect([...t.end]).toEqual([9e-6, 9e-6, 9e-6]);
});

test("a byte order mark, and an array without its end as the format allows, are read", () => {
  const event = JSON.stringify({ ph: "X", name: "a", pid: 0, tid: 0, ts: 0, dur: 1 });
  for (const text of [`\ufeff[${event}]`, `[${event},\n`, `[\n${event}\n`]) {
    expect(fromChromeTrace(text).length).toBe(1);
  }
  expect(() => fromChromeTrace(`[${event}, {"ph"`)).toThrow("the trace is no JSON");
});

test("what is no trace is refused with the place", () => {
  const event = { ph: "X", name: "a", pid: 0, tid: 0, ts: 5 };
  expect(() => fromChromeTrace([event, { ...event, dur: -2 }])).toThrow(
    "event 1 ends at 3 us, before its start at 5 us",
  );
  expect(() =>
    fromChromeTrace([
      { ...event, ph: "B" },
      { ...event, ph: "E", ts: 4 },
    ]),
  ).toThrow("event 1 ends at 4 us, before its start at 5 us");
  expect(() => fromChromeTrace("{")).toThrow("the trace is no JSON");
  expect(() => fromChromeTrace({})).toThrow("an object with traceEvents");
  expect(() => fromChromeTrace([3])).toThrow("event 0 is no object");
  expect(() => fromChromeTrace([{ ph: "X", ts: "soon" }])).toThrow('event 0 has ts "soon"');
  expect(() => fromChromeTrace([{ ph: "E", ts: 1 }])).toThrow("event 0 ends what has not begun");
});

test("a large trace comes in pieces that make the same text", () => {
  const t = new TimelineBuilder();
  for (let i = 0; i < 20_000; i++) {
    t.add({ rank: i % 3, lane: "compute", kind: "forward", action: "f", start: i, end: i + 1 });
  }
  const pieces = [...chromeTracePieces(t.finish())];
  expect(pieces.length).toBeGreaterThan(4);
  expect(pieces.join("")).toBe(toChromeTrace(t.finish()));
  expect(read(pieces.join("")).filter((e) => e.ph === "X")).toHaveLength(20_000);
});

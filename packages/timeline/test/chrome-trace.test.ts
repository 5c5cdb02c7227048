import fc from "fast-check";
import { expect, test } from "vitest";
import { TimelineBuilder, lanes, toChromeTrace } from "@trireme/timeline";
import { pipeline } from "./pipeline.ts";

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
  const spans = fc.array(
    fc.tuple(
      fc.integer({ min: 0, max: 1 }),
      fc.constantFrom(...lanes),
      fc.double({ min: 0, max: 1, noNaN: true }),
      fc.double({ min: 0, max: 0.3, noNaN: true }),
    ),
  );
  fc.assert(
    fc.property(spans, (all) => {
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

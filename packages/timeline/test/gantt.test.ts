import { expect, test } from "vitest";
import { TimelineBuilder, gantt } from "@trireme/timeline";
import { pipeline } from "./pipeline.ts";

test("a pipeline is drawn as in the papers", () => {
  expect(gantt(pipeline(), { width: 18 })).toBe(
    [
      "0 FFFF....BBBB..BBBB",
      "1 ..FFBBBBFFBBBB....",
      "  0              9 s",
      "F forward  B backward  . idle",
      "",
    ].join("\n"),
  );
});

test("computing hides communication, and a slice shows what fills most of it", () => {
  const t = new TimelineBuilder();
  t.add({ rank: 12, lane: "inter", kind: "all-reduce", action: "r", start: 0, end: 4 });
  t.add({ rank: 12, lane: "compute", kind: "weight-gradient", action: "w", start: 0, end: 2 });
  t.add({ rank: 7, lane: "host", kind: "load", action: "l", start: 1.2, end: 1.6 });
  const rows = gantt(t.finish(), { width: 4 }).split("\n");
  expect(rows.slice(0, 2)).toEqual([" 7 ....", "12 WW++"]);
});

test("no spans, no time and no width", () => {
  const t = new TimelineBuilder();
  expect(gantt(t.finish())).toBe("no spans\n");
  t.add({ rank: 0, lane: "compute", kind: "forward", action: "f", start: 5, end: 5 });
  expect(gantt(t.finish(), { width: 3 })).toBe("0 ...\n  0 0 s\n. idle\n");
  expect(() => gantt(t.finish(), { width: 0 })).toThrow("width 0");
});

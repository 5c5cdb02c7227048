import { expect, test } from "vitest";
import { TimelineBuilder, ganttSvg } from "@trireme/timeline";
import { pipeline } from "./pipeline.ts";

test("a pipeline is a row a rank, a box an action, to scale", () => {
  const svg = ganttSvg(pipeline(), { width: 1026, title: "1F1B, p = 2 & m = 2" });
  expect(svg).toMatchSnapshot();
  // 900 pixels for 9 s: the backward of 2 s at 2 s is a box of 200 at 110 + 200.
  expect(svg).toContain(
    '<rect x="310" y="50" width="200" height="18" fill="#54a24b"><title>1B0: backward, 2 s + 2 s</title>',
  );
});

test("names are escaped, and boxes too narrow to see are drawn together", () => {
  const t = new TimelineBuilder();
  for (let i = 0; i < 10_000; i++) {
    t.add({ rank: 0, lane: "inter", kind: "send", action: "<&\u0000", start: i, end: i + 1 });
  }
  t.add({
    rank: 0,
    lane: "compute",
    kind: "forward",
    action: "<&\u0000\ud83d\ude00",
    start: 0,
    end: 9000,
  });
  const svg = ganttSvg(t.finish());
  expect(svg.length).toBeLessThan(4000);
  expect(svg).toContain("<title>&lt;&amp;\ufffd\u{1f600}: forward");
});

test("no spans and no time give a picture without boxes; no room is refused", () => {
  const t = new TimelineBuilder();
  expect(ganttSvg(t.finish())).toMatch(/^<svg [^]*<\/svg>\n$/);
  t.add({ rank: 0, lane: "compute", kind: "forward", action: "f", start: 5, end: 5 });
  expect(ganttSvg(t.finish())).not.toContain("NaN");
  expect(() => ganttSvg(t.finish(), { width: 100 })).toThrow(
    "width 100, row height 18: give at least 127",
  );
});

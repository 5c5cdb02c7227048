import { expect, test } from "vitest";
import { type Timeline, TimelineBuilder, compare } from "@trireme/timeline";

test("parents are adopted of a span that waits for more of them than a call takes arguments", () => {
  const build = (parents: boolean): Timeline => {
    const t = new TimelineBuilder({ capacity: 150_001 });
    const action = t.actionCode("f");
    for (let r = 0; r < 150_000; r++) t.addFast(r, 0, 0, action, 0, 1);
    const barrier = t.addFast(0, 2, 12, t.actionCode("barrier"), 1, 2);
    if (parents) for (let r = 0; r < 150_000; r++) t.link(barrier, r);
    return t.finish();
  };
  expect(compare(build(true), build(false)).difference).toBe(0);
});

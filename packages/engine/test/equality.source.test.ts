import { expect, test } from "vitest";
import { deepSeek, expectEqual, gpt, llama, train } from "./equality.ts";
import { smallRun } from "./small-run.ts";

// A slice of the grid in test/slow/equality-grid.source.test.ts.
test.each([
  ["pp2, interleaved, ZeRO 1, dp2", { dp: 2, pp: 2, vpp: 2, zero: 1 }, gpt],
  ["pp2, ZB-H1, full recomputation", { pp: 2, schedule: "zb-h1", recompute: "full" }, llama],
  ["ZeRO 3 behind computing, dp2", { dp: 2, zero: 3, overlapDataParallel: true }, llama],
  ["tp2 with sequence parallelism, pp2", { tp: 2, pp: 2, sequenceParallel: true }, gpt],
  ["experts on two ranks", { dp: 2, ep: 2, zero: 1 }, deepSeek],
  ["pp4, embedding and head by themselves", { pp: 4, stageLayers: [0, 2, 2, 0] }, gpt],
  ["cp2 by ring, selective recomputation", { cp: 2, recompute: "selective" }, gpt],
] as const)("%s trains as one rank does", (_, plan, form) => expectEqual(plan, form, 20));

test("the same plan and seed give the same bits", async () => {
  const run = smallRun({ dp: 2, pp: 2, zero: 2, overlapDataParallel: true });
  const [a, b] = [await train(run, 10), await train(run, 10)];
  expect(a.losses).toEqual(b.losses);
  expect(a.first).toEqual(b.first);
});

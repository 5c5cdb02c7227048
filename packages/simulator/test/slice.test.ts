import { expect, test } from "vitest";
import { recordStep, simulateStep, sliceStep } from "@trireme/simulator";
import { type Timeline, spans } from "@trireme/timeline";
import { defineCluster } from "@trireme/topology";
import { defineModel, definePlan } from "@trireme/workload";

const model = defineModel({ layers: 16, hidden: 512, heads: 8, vocab: 1024, context: 256 });
const plan = definePlan(model, {
  tp: 2,
  dp: 4,
  pp: 4,
  globalBatch: 32,
  zero: 1,
  sequenceParallel: true,
  overlapDataParallel: true,
});
const cluster = defineCluster({ host: "dgx-h100", hosts: 4 });
const o = { model, plan, cluster };

/** Computing and collectives of some ranks; the way of messages in is not part of a slice. */
function did(t: Timeline, ranks: readonly number[]): string[] {
  return [...spans(t)]
    .filter((s) => ranks.includes(s.rank) && s.kind !== "receive")
    .map((s) => `${s.rank} ${s.action} ${s.kind} ${s.start} ${s.end}`)
    .sort();
}

test("a slice without changes does what its ranks did, to the last bit", () => {
  const recording = recordStep({ ...o, unfold: true });
  const whole = simulateStep({ ...o, unfold: true });
  expect(recording.time).toBe(whole.step);
  for (const ranks of [[0], [3, 4], [8, 9, 31]]) {
    const { timeline, events } = sliceStep(recording, { ranks });
    expect(did(timeline, ranks)).toEqual(did(whole.timeline, ranks));
    expect(events).toBeLessThan(whole.events / 2);
  }
});

test("ranks that were folded are sliced as their stand-ins", () => {
  const recording = recordStep(o);
  const { timeline } = sliceStep(recording, { ranks: [13] });
  const { standIn } = simulateStep(o);
  const one = standIn[13]!;
  expect([...new Set(timeline.rank)]).toEqual([one]);
  expect(did(timeline, [one])).toEqual(did(simulateStep(o).timeline, [one]));
});

test("a slower rank in a slice is as late as it makes itself, and not later than in full", () => {
  const recording = recordStep({ ...o, unfold: true });
  const speed = (rank: number): number => (rank === 5 ? 0.7 : 1);
  const { timeline } = sliceStep(recording, { ranks: [5], speed });
  const full = simulateStep({ ...o, unfold: true, speed });
  const end = timeline.end.reduce((a, b) => Math.max(a, b), 0);
  expect(end).toBeGreaterThan(recording.time);
  expect(end).toBeLessThanOrEqual(full.step * (1 + 1e-9));
  // The first microbatches do not depend on how others react: there the slice is exact.
  const firstEnd = (t: Timeline): number =>
    [...spans(t)].find((s) => s.rank === 5 && s.action === "0F0")!.end;
  expect(firstEnd(timeline)).toBe(firstEnd(full.timeline));
});

test("no rank, an unknown one and one twice are refused or joined", () => {
  const recording = recordStep(o);
  expect(() => sliceStep(recording, { ranks: [] })).toThrow("choose at least one");
  expect(() => sliceStep(recording, { ranks: [99] })).toThrow("rank 99 is not in 0..31");
});

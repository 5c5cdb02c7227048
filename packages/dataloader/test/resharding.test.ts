import fc from "fast-check";
import { type LoadingPlan, loadProgram, placeTree, reshard } from "@trireme/dataloader";
import { expect, test } from "vitest";

function planOn(dp: number, steps = 1): LoadingPlan {
  const tree = placeTree([{ name: "dp", size: dp, data: "distinct" }]);
  const planner = loadProgram({ tree, sources: ["a", "b"], globalBatch: 24 })
    .balance("greedy")
    .plan();
  let state = planner.start();
  let plan: LoadingPlan | undefined;
  for (let step = 0; step < steps; step++) {
    const draw = planner.draw(state);
    const metadata = Array.from(draw.positions, (position) => ({
      tokens: 1 + ((position * 7) % 13),
    }));
    plan = planner.decide(draw, metadata);
    state = draw.next;
  }
  return plan!;
}

test("when the world changes each sample is kept, moved or read again, and only for a lost host", () => {
  const sizes = fc.constantFrom(1, 2, 3, 4, 6, 8, 12);
  fc.assert(
    fc.property(sizes, sizes, fc.integer({ min: 1, max: 4 }), fc.nat(11), (dp, to, hosts, lost) => {
      const [before, after] = [planOn(dp, 3), planOn(to, 3)];
      const hostsBefore = Array.from({ length: dp }, (_, share) =>
        share === lost ? undefined : share % hosts,
      );
      const hostsAfter = Array.from({ length: to }, (_, share) => share % hosts);
      const { kept, moved, reread } = reshard({ before, after, hostsBefore, hostsAfter });
      const all = [...kept, ...moved].map(({ sample }) => sample);
      expect([...all, ...reread].sort((a, b) => a - b)).toEqual(
        Array.from({ length: 24 }, (_, i) => i),
      );
      for (const sample of reread) expect(before.shareOf[sample]).toBe(lost);
      for (const { sample, from, to: share } of [...kept, ...moved]) {
        expect([before.shareOf[sample], after.shareOf[sample]]).toEqual([from, share]);
      }
      for (const { from, to: share } of kept) expect(hostsBefore[from]).toBe(hostsAfter[share]);
      for (const { from, to: share } of moved)
        expect(hostsBefore[from]).not.toBe(hostsAfter[share]);
      if (hosts === 1) expect(moved).toEqual([]);
    }),
  );
});

test("the same world keeps everything, and another step is refused", () => {
  const plan = planOn(4);
  const options = { before: plan, hostsBefore: [0, 1, 2, 3], hostsAfter: [0, 1, 2, 3] };
  expect(reshard({ ...options, after: plan }).kept.length).toBe(24);
  expect(() => reshard({ ...options, after: planOn(4, 2) })).toThrow(
    "a plan of step 1 cannot follow one of step 0: sample 0 differs",
  );
  expect(() => reshard({ ...options, after: plan, hostsAfter: [0] })).toThrow(
    "hosts of 4 and 1 shares; the plans have 4 and 4",
  );
});

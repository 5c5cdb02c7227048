import { expect, test } from "vitest";
import { planDispatch, planUnique, routingTrace } from "@trireme/moe-dispatch";

const o = { topK: 8, experts: 256, ranks: 64 };

test("a plan of a million skewed tokens is a permutation with all its orders and sums", () => {
  const trace = { ...o, tokens: 1_000_000, seed: 1, zipf: 1, correlation: 0.5 };
  const expertIds = routingTrace(trace).choices(0);
  const plan = planDispatch({ ...o, expertIds, align: 128 });
  const wrong = { inverse: 0, expert: 0, source: 0, padding: 0 };
  for (let slot = 0; slot < expertIds.length; slot++) {
    if (plan.sendSlots[plan.sendRows[slot]!] !== slot) wrong.inverse++;
    if (plan.expertSlots[plan.expertRows[slot]!] !== slot) wrong.inverse++;
  }
  let padding = 0;
  for (let e = 0; e < o.experts; e++) {
    let last = -1;
    for (let row = plan.expertStarts[e]!; row < plan.expertStarts[e + 1]!; row++) {
      const slot = plan.expertSlots[row]!;
      if (slot === -1) {
        padding++;
        continue;
      }
      if (expertIds[slot] !== e) wrong.expert++;
      // Slots rise within an expert, and so do source ranks: tokens of a rank are consecutive.
      if (slot <= last) wrong.source++;
      last = slot;
    }
    if (plan.expertStarts[e]! % 128 !== 0) wrong.padding++;
  }
  expect(wrong).toEqual({ inverse: 0, expert: 0, source: 0, padding: 0 });
  expect(plan.filled).toBe(8e6);
  expect(plan.expertSlots.length).toBe(8e6 + padding);
  expect(plan.splits.reduce((a, b) => a + b, 0)).toBe(8e6);

  const unique = planUnique({ ...o, expertIds, ranksPerHost: 8 });
  for (let i = 0; i < unique.splits.length; i++) {
    expect(unique.splits[i]).toBeLessThanOrEqual(plan.splits[i]!);
  }
  expect(unique.receiveTokens.length).toBe(unique.splits.reduce((a, b) => a + b, 0));
});

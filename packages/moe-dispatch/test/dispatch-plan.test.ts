import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type DispatchOptions,
  type DispatchPlan,
  planDispatch,
  tokenId,
} from "@trireme/moe-dispatch";
import { randomIds } from "./naive.ts";

/** A random plan: any sizes, holes, ranks without tokens, primes. */
const plans = fc
  .record({
    ranks: fc.integer({ min: 1, max: 7 }),
    local: fc.integer({ min: 1, max: 5 }),
    topK: fc.integer({ min: 1, max: 4 }),
    perRank: fc.array(fc.constantFrom<number>(0, 0, 1, 2, 7, 13), { minLength: 7, maxLength: 7 }),
    align: fc.constantFrom(1, 1, 2, 16),
    padded: fc.boolean(),
    seed: fc.integer(),
  })
  .map(({ ranks, local, topK, perRank, align, padded, seed }): DispatchOptions => {
    const experts = ranks * local;
    const tokensPerRank = perRank.slice(0, ranks);
    const tokens = tokensPerRank.reduce<number>((a, b) => a + b, 0);
    const k = Math.min(topK, experts);
    const expertIds = randomIds({ tokens, topK: k, experts, seed, holes: true });
    return {
      expertIds,
      topK: k,
      experts,
      ranks,
      tokensPerRank,
      align,
      ...(padded ? { capacity: 13 } : {}),
    };
  });

interface Row {
  slot: number;
  rank: number;
  expert: number;
}

/** All filled slots with their source rank and expert, in slot order. */
function slotsOf(o: DispatchOptions): Row[] {
  const rankOf: number[] = [];
  Array.from(o.tokensPerRank!).forEach((n, r) => rankOf.push(...Array<number>(n).fill(r)));
  return Array.from(o.expertIds, (expert, slot) => ({
    slot,
    expert,
    rank: rankOf[Math.floor(slot / o.topK)]!,
  })).filter((row) => row.expert !== -1);
}

/** Lays rows out in blocks, in the order given, each block and each group of blocks padded. */
function layOut(blocks: Row[][][], blockSize: number | undefined, align: number): number[] {
  const out: number[] = [];
  for (const group of blocks) {
    for (const block of group) {
      out.push(...block.map((row) => row.slot));
      for (let i = block.length; i < (blockSize ?? 0); i++) out.push(-1);
    }
    while (out.length % align !== 0) out.push(-1);
  }
  return out;
}

function expectPlan(o: DispatchOptions, p: DispatchPlan): void {
  const all = slotsOf(o);
  const ranks = Array.from({ length: o.ranks }, (_, r) => r);
  const experts = Array.from({ length: o.experts }, (_, e) => e);
  const block = (rank: number, expert: number) =>
    all.filter((row) => row.rank === rank && row.expert === expert);
  expect(p.filled).toBe(all.length);
  expect([...p.sendSlots]).toEqual(
    layOut(
      ranks.map((r) => experts.map((e) => block(r, e))),
      o.capacity,
      1,
    ),
  );
  expect([...p.expertSlots]).toEqual(
    layOut(
      experts.map((e) => ranks.map((r) => block(r, e))),
      o.capacity,
      o.align ?? 1,
    ),
  );
  expect([...p.counts]).toEqual(ranks.flatMap((r) => experts.map((e) => block(r, e).length)));
  const local = o.experts / o.ranks;
  expect([...p.splits]).toEqual(
    ranks.flatMap((from) =>
      ranks.map((to) =>
        experts
          .filter((e) => Math.floor(e / local) === to)
          .reduce((sum, e) => sum + (o.capacity ?? block(from, e).length), 0),
      ),
    ),
  );
  // The inverses.
  for (let slot = 0; slot < o.expertIds.length; slot++) {
    if (o.expertIds[slot] === -1) {
      expect([p.sendRows[slot], p.expertRows[slot]]).toEqual([-1, -1]);
    } else {
      expect(p.sendSlots[p.sendRows[slot]!]).toBe(slot);
      expect(p.expertSlots[p.expertRows[slot]!]).toBe(slot);
    }
  }
  expect(p.sendStarts.at(-1)).toBe(p.sendSlots.length);
  expect(p.expertStarts.at(-1)).toBe(p.expertSlots.length);
}

test("a plan is the naive one, for any sizes, holes, capacity and alignment", () => {
  fc.assert(fc.property(plans, (o) => expectPlan(o, planDispatch(o))));
});

test("every number of tokens from 0 to 130 plans as the naive reference", () => {
  for (let tokens = 0; tokens <= 130; tokens++) {
    const expertIds = randomIds({ tokens, topK: 2, experts: 6, seed: tokens });
    const plan = planDispatch({ expertIds, topK: 2, experts: 6, ranks: 3 });
    const tokensPerRank = [0, 1, 2].map((r) => plan.tokenStarts[r + 1]! - plan.tokenStarts[r]!);
    expect(Math.max(...tokensPerRank) - Math.min(...tokensPerRank)).toBeLessThanOrEqual(1);
    expectPlan({ expertIds, topK: 2, experts: 6, ranks: 3, tokensPerRank }, plan);
  }
});

test("the published permutation: expert-major, and stable", () => {
  const plan = planDispatch({
    expertIds: Int32Array.of(0, 1, 0, 1, 1, 2),
    topK: 2,
    experts: 4,
    ranks: 1,
  });
  expect([...plan.expertSlots].map((slot) => Math.floor(slot / 2))).toEqual([0, 1, 0, 1, 2, 2]);
  expect([...plan.counts]).toEqual([2, 3, 1, 0]);
});

test("experts and ranks without tokens take no rows, or only padding", () => {
  const o = { topK: 2, experts: 4, ranks: 2, tokensPerRank: [0, 3] } as const;
  const expertIds = Int32Array.of(0, 1, 0, 1, 0, 1);
  const plan = planDispatch({ ...o, expertIds, align: 8 });
  expect([...plan.splits]).toEqual([0, 0, 6, 0]);
  expect([...plan.expertStarts]).toEqual([0, 8, 16, 16, 16]);
  const none = planDispatch({ ...o, expertIds: expertIds.map(() => -1), capacity: 2 });
  expect([...none.expertSlots]).toEqual(Array(16).fill(-1));
  const empty = planDispatch({ expertIds: new Int32Array(0), topK: 8, experts: 256, ranks: 64 });
  expect(empty.expertSlots.length).toBe(0);
});

test("token ids beyond 2^31 do not wrap", () => {
  const expertIds = randomIds({ tokens: 5, topK: 2, experts: 4, seed: 1 });
  for (const firstToken of [2 ** 31 - 3, 2 ** 32, 2 ** 52]) {
    const plan = planDispatch({ expertIds, topK: 2, experts: 4, ranks: 2, firstToken });
    const ids = [...plan.expertSlots].map((slot) => tokenId(plan, slot)).sort((a, b) => a - b);
    expect(ids).toEqual([0, 1, 2, 3, 4].flatMap((t) => [firstToken + t, firstToken + t]));
  }
});

test("what cannot be planned is refused with the numbers and the rule", () => {
  const expertIds = Int32Array.of(0, 1, 0, 1, 1, 2);
  const o = { expertIds, topK: 2, experts: 4, ranks: 2 };
  expect(() => planDispatch({ ...o, ranks: 3 })).toThrow(
    "4 experts do not divide over 3 ranks; the nearest number that does is 3",
  );
  expect(() => planDispatch({ ...o, topK: 4 })).toThrow("tokens (6 slots of top-4) is 1.5");
  expect(() => planDispatch({ ...o, expertIds: Int32Array.of(0, 4) })).toThrow(
    "slot 1 names expert 4",
  );
  expect(() => planDispatch({ ...o, expertIds: Int32Array.of(0, -2) })).toThrow("expert -2");
  expect(() => planDispatch({ ...o, capacity: 1 })).toThrow(
    "rank 1 has 2 slots for expert 1, but the capacity is 1; drop tokens first, or raise it to 2",
  );
  expect(() => planDispatch({ ...o, tokensPerRank: [1, 1] })).toThrow(
    "add up to 2, but expertIds hold 3",
  );
  expect(() => planDispatch({ ...o, capacity: 2 ** 31 - 1 })).toThrow("one plan holds 2^31 - 1");
});

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  checkDispatchConfigs,
  combineRows,
  dispatchRows,
  exchangeRows,
  exchangeVolume,
  gatherRows,
  planDispatch,
  planReceive,
  planSend,
  receivesOf,
  reverseSplits,
  splitsFromCounts,
} from "@trireme/moe-dispatch";
import { farthest, normals, randomIds } from "./naive.ts";

const sizes = fc.record({
  ranks: fc.integer({ min: 1, max: 5 }),
  local: fc.integer({ min: 1, max: 3 }),
  perRank: fc.array(fc.constantFrom<number>(0, 1, 4, 9), { minLength: 5, maxLength: 5 }),
  align: fc.constantFrom(1, 4),
  padded: fc.boolean(),
  seed: fc.integer(),
});

test("ranks that know only their own tokens carry out the plan of all ranks, there and back", () => {
  fc.assert(
    fc.property(sizes, ({ ranks, local, perRank, align, padded, seed }) => {
      const [experts, topK, hidden] = [ranks * local, Math.min(2, ranks * local), 3];
      const tokensPerRank = perRank.slice(0, ranks);
      const tokens = tokensPerRank.reduce<number>((a, b) => a + b, 0);
      const expertIds = randomIds({ tokens, topK, experts, seed, holes: true });
      const fixed = padded ? { capacity: 9 } : {};
      const plan = planDispatch({
        expertIds,
        topK,
        experts,
        ranks,
        tokensPerRank,
        align,
        ...fixed,
      });
      const x = normals(tokens * hidden, seed);
      const starts = [...plan.tokenStarts];

      // Each rank plans its sends, and counts are exchanged.
      const own = starts
        .slice(0, ranks)
        .map((start, r) => expertIds.slice(start * topK, starts[r + 1]! * topK));
      const sends = own.map((ids) => planSend({ expertIds: ids, topK, experts, ranks, ...fixed }));
      const receives = sends.map((_, q) =>
        planReceive({
          counts: sends.flatMap((s) => Array.from(s.counts.subarray(q * local, (q + 1) * local))),
          ranks,
          align,
          ...fixed,
        }),
      );
      const splits = sends.flatMap((s) => [...s.splits]);
      expect(splits).toEqual([...plan.splits]);
      receives.forEach((r, q) => {
        expect([...r.splits]).toEqual(sends.map((s) => s.splits[q]!));
        expect(r).toEqual(receivesOf(plan, q, { align, ...fixed }));
      });

      // The rows travel, are sorted, and are what the plan of all ranks says.
      const buffers = sends.map((s, r) =>
        gatherRows(x.slice(starts[r]! * hidden, starts[r + 1]! * hidden), hidden, s.slots, topK),
      ) as Float64Array[];
      const arrived = exchangeRows(buffers, splits, hidden);
      const sorted = receives.map((r, q) => {
        const out = new Float64Array(r.expertStarts.at(-1)! * hidden);
        r.rows.forEach((row, i) =>
          out.set(arrived[q]!.subarray(i * hidden, (i + 1) * hidden), row * hidden),
        );
        return out;
      });
      const expected = dispatchRows(plan, x, hidden);
      expect(sorted.flatMap((s) => [...s])).toEqual([...expected]);

      // The way back.
      const leaving = receives.map(
        (r, q) => gatherRows(sorted[q]!, hidden, r.rows) as Float64Array,
      );
      const back = exchangeRows(leaving, reverseSplits(splits, ranks), hidden);
      expect(back.flatMap((b) => [...b])).toEqual(buffers.flatMap((b) => [...b]));
      const weights = normals(tokens * topK, seed + 1);
      const combined = combineRows(plan, expected, hidden, weights);
      sends.forEach((s, r) => {
        const out = new Float64Array((starts[r + 1]! - starts[r]!) * hidden);
        s.rows.forEach((row, slot) => {
          if (row < 0) return;
          const w = weights[starts[r]! * topK + slot]!;
          for (let c = 0; c < hidden; c++)
            out[Math.floor(slot / topK) * hidden + c]! += w * back[r]![row * hidden + c]!;
        });
        expect(farthest(out, combined.slice(starts[r]! * hidden, starts[r + 1]! * hidden))).toBe(0);
      });
    }),
  );
});

test("source ranks are in order within each expert, and tiles know where each begins", () => {
  const r = planReceive({ counts: [2, 1, 0, 3, 4, 0], ranks: 3, align: 8 });
  expect([...r.expertStarts]).toEqual([0, 8, 16]);
  expect([...r.sourceStarts]).toEqual([0, 2, 2, 6, 8, 9, 12, 12]);
  expect([...r.rows]).toEqual([0, 1, 8, 9, 10, 11, 2, 3, 4, 5]);
});

test("splits from counts above 2^31 are exact", () => {
  const counts = [3e9, 1, 2 ** 40, 7, 5e9, 2 ** 33, 11, 0];
  const splits = splitsFromCounts(counts, 2, 4);
  expect([...splits]).toEqual([3e9 + 1, 2 ** 40 + 7, 5e9 + 2 ** 33, 11]);
  const volume = exchangeVolume(splits, 2);
  expect(volume.total).toBe(2 ** 40 + 7 + 5e9 + 2 ** 33);
  expect(volume.largest).toBe(2 ** 40 + 7);
  expect([...reverseSplits(splits, 2)]).toEqual([3e9 + 1, 5e9 + 2 ** 33, 2 ** 40 + 7, 11]);
});

test("ranks that disagree, or have more tokens than their buffers, are named instead of waited for", () => {
  const c = { maxTokens: 128, tokens: 100, hidden: 7168, topK: 8, experts: 256 };
  expect(() => checkDispatchConfigs([c, { ...c, tokens: 3 }])).not.toThrow();
  expect(() => checkDispatchConfigs([c, c, { ...c, maxTokens: 64 }])).toThrow(
    "maxTokens is 128 on rank 0, but 64 on rank 2 (1 of 3 ranks differ: 2)",
  );
  expect(() => checkDispatchConfigs([c, { ...c, tokens: 129 }])).toThrow(
    "rank 1 has 129 tokens, but maxTokens is 128; raise it to 129",
  );
  expect(() => exchangeRows([new Float64Array(2)], [1], 1)).toThrow(
    "rank 0 holds 2 rows, but its splits add up to 1",
  );
});

test("receives that 32 bits do not count, and rows that are not there, are refused", () => {
  expect(() => planReceive({ counts: [1, 1], ranks: 1, align: 2 ** 33 })).toThrow(
    "align is 8589934592",
  );
  expect(() => planReceive({ counts: [1, 1, 1], ranks: 1, align: 2 ** 30 })).toThrow(
    "the plan needs at least 2147483648 rows",
  );
  expect(() => planReceive({ counts: [2 ** 31], ranks: 1 })).toThrow("at least 2147483648 rows");
  expect(() => planReceive({ counts: [1], ranks: 1, capacity: 2.5 })).toThrow("capacity is 2.5");
  expect(() => gatherRows(Float64Array.of(1, 2), 1, Int32Array.of(1, 5), 2)).toThrow(
    "index 1 is 5, row 2 of a source that has 2; rows are counted from 0",
  );
});

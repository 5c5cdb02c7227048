import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  chunksOfRank,
  expandLayout,
  layersOfStage,
  parseLayout,
  printLayout,
  uniformLayout,
} from "@trireme/schedulers";

describe("Megatron's layout language", () => {
  test.each([
    ["xy(ab|cd|ef)*2,pq", "xyab|cd|efab|cd|efpq"],
    ["(|ab)*2,cd", "|ab|abcd"],
    ["E|t*5|t*6|t,m,L", "E|ttttt|tttttt|tmL"],
    ["E(t*2|)*2,L", "Ett|tt|L"],
  ])("%s is %s", (text, expanded) => {
    expect(expandLayout(text)).toBe(expanded);
  });
  test("61 layers and one MTP layer on 16 ranks", () => {
    const l = parseLayout("Ettt|(tt|)*29,m|L", { ranks: 16, layers: 61, mtpLayers: 1 });
    expect(l.stages.length).toBe(32);
    expect(l.chunks).toBe(2);
    expect(chunksOfRank(l, 0)).toEqual(["Ettt", "tt"]);
    expect(chunksOfRank(l, 14)).toEqual(["tt", "m"]);
    expect(chunksOfRank(l, 15)).toEqual(["tt", "L"]);
    expect(() => chunksOfRank(l, 16)).toThrow("rank 16 is not in 0..15");
    expect(layersOfStage(l, 30)).toEqual([]);
  });
  test("numbers of layers run through the chunks of all ranks", () => {
    const l = parseLayout("Ett|tttt|tttt|ttL", { ranks: 2 });
    expect([0, 1, 2, 3].map((k) => layersOfStage(l, k))).toEqual([
      [0, 1],
      [2, 3, 4, 5],
      [6, 7, 8, 9],
      [10, 11],
    ]);
  });
  test("empty stages are legal", () => {
    // Megatron-LM#1852.
    const l = parseLayout("Et||t|L", { ranks: 2, layers: 2 });
    expect(layersOfStage(l, 1)).toEqual([]);
    expect(layersOfStage(l, 2)).toEqual([1]);
  });
  test("reading what was printed gives the same layout", () => {
    const counts = fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 12 });
    fc.assert(
      fc.property(counts, (ts) => {
        const text = `E${ts.map((n) => "t".repeat(n)).join("|")}L`;
        const l = parseLayout(text, { ranks: 1 });
        expect(parseLayout(printLayout(l), { ranks: 1 })).toEqual(l);
        const ids = l.stages.flatMap((_, k) => layersOfStage(l, k));
        expect(ids).toEqual(Array.from({ length: ts.reduce((a, b) => a + b, 0) }, (_, i) => i));
      }),
    );
  });
  test.each([
    ["tt|L", {}, "0 E; exactly one stands first"],
    ["tE|L", {}, "1 E; exactly one stands first"],
    ["Et|t", {}, "0 L; exactly one stands last"],
    ["Et|Lt", {}, "1 L; exactly one stands last"],
    ["Et|t|L", {}, "3 stages do not divide by 2 ranks; 2 or 4 do"],
    ["Et|tL", { layers: 3 }, "2 t, but the model has 3 layers"],
    ["Et|tL", { mtpLayers: 1 }, "0 m, but the model has 1 multi-token-prediction layers"],
    ["Em|tL", {}, "a t stands after an m"],
    ["Et|t|m|mL", {}, "m on stages 2 and 3; all m stand on one stage"],
    ["Et|m||L", {}, "m on stage 1; it stands in the last chunk, on stage 2 or later"],
    ["Et|xL", {}, "unknown letter x"],
    ["E((t)*2)*2L", {}, "does not belong to a repetition"],
    ["E(t|L", {}, "does not belong to a repetition"],
    ["Et*|L", {}, "does not belong to a repetition"],
    ["Et*999999999|L", {}, "repeats 999999999 times"],
    ["E(t*100000)*100000L", {}, "more than 1000000 letters"],
    [
      "E(t|)*100000(t|)*100000(t|)*100000(t|)*100000(t|)*100000(t|)*100000L",
      {},
      "more than 1000000 letters",
    ],
  ])("%s is refused: %j %s", (text, more, message) => {
    expect(() => parseLayout(text, { ranks: 2, ...more })).toThrow(message);
  });
});

describe("equal shares", () => {
  test.each([
    // Megatron-LM#468, Megatron-LM#1304, Megatron-LM PR#326: fewer layers built than asked for.
    [{ layers: 80, ranks: 16, chunks: 2 }, "2 each would build only 64; use 64 or 96"],
    [{ layers: 30, ranks: 4 }, "7 each would build only 28; use 28 or 32"],
    [{ layers: 40, ranks: 8, chunks: 2 }, "40 layers do not divide over 16 stages"],
    // Megatron-LM#1778: a count for the last rank where there is one rank.
    [{ layers: 8, ranks: 1, lastRankLayers: 3 }, "1 rank holds all 8 layers"],
    [{ layers: 8, ranks: 2, firstRankLayers: 5, lastRankLayers: 4 }, "take 9 of 8 layers"],
    [
      { layers: 8, ranks: 2, firstRankLayers: 3, lastRankLayers: 4 },
      "0 ranks are left for the other 1",
    ],
    [
      { layers: 7, ranks: 4, chunks: 2, firstRankLayers: 1 },
      "1 layers do not divide over 2 stages of the first rank",
    ],
    [{ layers: -1, ranks: 4 }, "layers = -1"],
    [
      { layers: 0, ranks: 2 ** 20, chunks: 2 },
      "1048576 ranks x 2 chunks = 2097152 stages; at most 2^20",
    ],
  ])("%j is refused", (o, message) => {
    expect(() => uniformLayout(o)).toThrow(message);
  });
  test("all four combinations of first and last counts give each layer once, in order", () => {
    // Megatron-LM#1584.
    for (const chunks of [1, 2]) {
      for (const first of [undefined, 2]) {
        for (const last of [undefined, 4]) {
          const ranks = 4;
          const middle = ranks - (first === undefined ? 0 : 1) - (last === undefined ? 0 : 1);
          const layers = (first ?? 0) + (last ?? 0) + 6 * middle;
          const l = uniformLayout({
            layers,
            ranks,
            chunks,
            ...(first === undefined ? {} : { firstRankLayers: first }),
            ...(last === undefined ? {} : { lastRankLayers: last }),
          });
          const ids = l.stages.flatMap((_, k) => layersOfStage(l, k));
          expect(ids).toEqual(Array.from({ length: layers }, (_, i) => i));
          const on = (rank: number): number =>
            chunksOfRank(l, rank).join("").replace(/[EL]/g, "").length;
          expect(on(0)).toBe(first ?? 6);
          expect(on(3)).toBe(last ?? 6);
          expect(parseLayout(printLayout(l), { ranks, layers })).toEqual(l);
        }
      }
    }
  });
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { causalPairs, requiredMultiple, zigzagChunks } from "@trireme/dataloader";

test("ranks cover the sequence once, with equal tokens and equal work", () => {
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 16 }), fc.nat(50), (cp, size) => {
      const length = 2 * cp * size;
      const seen = new Uint8Array(length);
      const work = new Set<number>();
      for (let rank = 0; rank < cp; rank++) {
        const chunks = zigzagChunks(length, cp, rank);
        for (const { start, end } of chunks) for (let t = start; t < end; t++) seen[t]!++;
        work.add(causalPairs(chunks));
      }
      expect(seen.every((count) => count === 1)).toBe(true);
      expect(work.size).toBe(1);
    }),
  );
});

test("a length that does not divide is refused with the nearest that does", () => {
  expect(() => zigzagChunks(7, 2, 0)).toThrow(
    "7 tokens does not divide into 2 x cp(2) = 4 chunks; pad it to 8",
  );
  expect(zigzagChunks(7, 1, 0)).toEqual([{ start: 0, end: 7 }]);
  expect(() => zigzagChunks(8, 2, 2)).toThrow("rank 2 is outside 0..1");
  expect(() => zigzagChunks(8, 0, 0)).toThrow("cp 0");
});

test("the multiple a length must have", () => {
  expect(requiredMultiple({ cp: 1, tp: 1, sequenceParallel: true })).toBe(1);
  expect(requiredMultiple({ cp: 4, tp: 8, sequenceParallel: false })).toBe(8);
  // cp · lcm(2, tp): NVIDIA-NeMo RL, pull request 3563.
  expect(requiredMultiple({ cp: 4, tp: 8, sequenceParallel: true })).toBe(32);
  expect(requiredMultiple({ cp: 4, tp: 3, sequenceParallel: true })).toBe(24);
  expect(requiredMultiple({ cp: 1, tp: 3, sequenceParallel: true })).toBe(3);
});

test("lengths and degrees that are none are refused", () => {
  for (const length of [NaN, -1, 1.5]) {
    for (const cp of [1, 2])
      expect(() => zigzagChunks(length, cp, 0)).toThrow(`a sequence of ${length} tokens`);
  }
  expect(() => requiredMultiple({ cp: 0, tp: 1, sequenceParallel: true })).toThrow(
    "cp 0 is not a positive integer",
  );
  expect(() => requiredMultiple({ cp: 2, tp: NaN, sequenceParallel: false })).toThrow("tp NaN");
});

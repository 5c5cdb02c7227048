import fc from "fast-check";
import {
  type LoadingPlan,
  type ShareBatch,
  constructShare,
  decodeFrame,
  encodeFrame,
  frameBound,
  frameWords,
  loadProgram,
  placeTree,
  sliceMicrobatch,
  zigzagChunks,
} from "@trireme/dataloader";
import { expect, test } from "vitest";

function planOf(lengths: readonly number[], microbatches: number): LoadingPlan {
  const tree = placeTree([]);
  const planner = loadProgram({
    tree,
    sources: ["a"],
    globalBatch: lengths.length,
    microbatches,
  }).plan();
  return planner.decide(
    planner.draw(planner.start()),
    lengths.map((tokens) => ({ tokens })),
  );
}
/** Sample i is i + 1, again and again. */
const read =
  (lengths: readonly number[]) =>
  (sample: number): Int32Array =>
    new Int32Array(lengths[sample]!).fill(sample + 1);

const shapes = fc.integer({ min: 1, max: 3 }).chain((microbatches) =>
  fc.tuple(
    fc.constant(microbatches),
    fc
      .array(fc.integer({ min: 1, max: 20 }), { minLength: 1, maxLength: 8 })
      .map((list) => Array.from({ length: microbatches }, () => list).flat()),
  ),
);

test("frames keep batches to the bit, and are no longer than their bound", () => {
  fc.assert(
    fc.property(shapes, fc.nat({ max: 2 ** 40 }), ([microbatches, lengths], step) => {
      const plan = { ...planOf(lengths, microbatches), step };
      const batch = constructShare(plan, 0, read(lengths), { sequence: 12, method: "first-fit" });
      const words = frameWords(batch);
      expect(words).toBeLessThanOrEqual(frameBound(lengths.length, 12, microbatches));
      const frame = new Int32Array(words);
      encodeFrame(batch, frame);
      expect(decodeFrame(frame)).toEqual(batch);
    }),
  );
});

test("the slices of a row put together are the row, with the boundaries of all of it", () => {
  const lengths = [5, 9, 3, 16, 2];
  const whole = constructShare(planOf(lengths, 1), 0, read(lengths), {
    sequence: 16,
    method: "best-fit",
    padding: 99,
  }).microbatches[0]!;
  for (const cp of [1, 2, 4]) {
    const back = new Int32Array(whole.tokens.length);
    for (let slice = 0; slice < cp; slice++) {
      const part = sliceMicrobatch(whole, cp, slice);
      expect([part.rows, part.width]).toEqual([whole.rows, 16 / cp]);
      expect(part.boundaries).toBe(whole.boundaries);
      for (let row = 0; row < part.rows; row++) {
        let at = row * part.width;
        for (const { start, end } of zigzagChunks(16, cp, slice)) {
          back.set(part.tokens.subarray(at, at + end - start), row * 16 + start);
          at += end - start;
        }
      }
    }
    expect(back).toEqual(whole.tokens);
  }
});

test("long samples are cut off by default, or split, and padding is marked", () => {
  const lengths = [10];
  const build = (long?: "split") =>
    constructShare(planOf(lengths, 1), 0, read(lengths), {
      sequence: 4,
      method: "best-fit",
      padding: 7,
      ...(long === undefined ? {} : { long }),
    }).microbatches[0]!;
  expect(build().rows).toBe(1);
  const split = build("split");
  expect(split.rows).toBe(3);
  expect([...split.tokens]).toEqual([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 7, 7]);
  // Nine labels of ten tokens, none in the padding.
  expect([...split.lossMask]).toEqual([1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0]);
});

test("a sample that is not what its metadata said is named", () => {
  const plan = planOf([4, 5], 1);
  expect(() => constructShare(plan, 0, read([4, 6]), { sequence: 8, method: "best-fit" })).toThrow(
    "step 0: sample 1 (source 0, position 1) came with 6 tokens, its metadata said 5",
  );
});

test("steps beyond 2^31 survive a frame", () => {
  const batch: ShareBatch = { step: 2 ** 45 + 3, share: 2, microbatches: [] };
  const frame = new Int32Array(frameWords(batch));
  encodeFrame(batch, frame);
  expect(decodeFrame(frame)).toEqual(batch);
});

test("a row has more segments than a call takes arguments", () => {
  const lengths = new Array<number>(150_000).fill(1);
  const { microbatches } = constructShare(planOf(lengths, 1), 0, () => Int32Array.of(1), {
    sequence: 150_000,
    method: "concatenate",
  });
  expect(microbatches[0]!.boundaries.length).toBe(150_001);
});

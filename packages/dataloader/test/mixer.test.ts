import fc from "fast-check";
import { type MixOptions, type MixState, blend, drawMix, startMix } from "@trireme/dataloader";
import { expect, test } from "vitest";

/** Samples [source, position] of so many steps, the state put through JSON at each. */
function run(options: MixOptions, sources: number, steps: number, batch: number) {
  let state: MixState = startMix(sources);
  const samples: [number, number][] = [];
  for (let step = 0; step < steps; step++) {
    const draw = drawMix(options, state, step, batch);
    draw.sources.forEach((source, i) => samples.push([source, draw.positions[i]!]));
    state = JSON.parse(JSON.stringify(draw.next)) as MixState;
  }
  return { samples, state };
}

test("constant weights give Megatron's blend, however it is cut into steps", () => {
  const weights = fc.array(fc.integer({ min: 0, max: 9 }), { minLength: 1, maxLength: 6 });
  fc.assert(
    fc.property(weights, fc.integer({ min: 1, max: 17 }), fc.nat(20), (list, batch, steps) => {
      fc.pre(list.some((weight) => weight > 0));
      const { sources, positions } = blend({ weights: list, length: batch * steps });
      const { samples } = run(
        { schedule: [{ step: 0, weights: list }] },
        list.length,
        steps,
        batch,
      );
      expect(samples).toEqual(Array.from(sources, (source, i) => [source, positions[i]!]));
    }),
  );
});

test("as weights move, each source has what its shares add up to, within a sample or two a source", () => {
  const points = fc.array(
    fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 3, maxLength: 3 }),
    {
      minLength: 1,
      maxLength: 4,
    },
  );
  fc.assert(
    fc.property(points, fc.integer({ min: 1, max: 40 }), (lists, batch) => {
      const schedule = lists.map((weights, k) => ({ step: 5 * k, weights }));
      const steps = 25;
      const { samples, state } = run({ schedule }, 3, steps, batch);
      expect(state.position).toBe(samples.length);
      const due = state.due.map(
        (samplesDue, d) => samplesDue + state.weights[d]! * (state.position - state.since),
      );
      // The rule takes the source furthest behind; three sources never fall further than that apart.
      due.forEach((count, d) => expect(Math.abs(count - state.taken[d]!)).toBeLessThan(3));
      // Positions of a source run on without a gap.
      for (let d = 0; d < 3; d++) {
        const own = samples.filter(([source]) => source === d).map(([, position]) => position);
        expect(own).toEqual(own.map((_, i) => i));
      }
    }),
  );
});

test("a source that ends is refused, or leaves the others their proportions", () => {
  const schedule = [{ step: 0, weights: [1, 1, 2] }];
  const sizes = [2, 100, 100];
  const options = { schedule, sizes } as const;
  expect(() => run({ ...options, exhausted: "refuse" }, 3, 2, 8)).toThrow(
    "source 0 has 2 samples, but step 1 wants another of it",
  );
  const { state } = run({ ...options, exhausted: "drop" }, 3, 10, 8);
  expect(state.taken[0]).toBe(2);
  expect(Math.abs(2 * state.taken[1]! - state.taken[2]!)).toBeLessThanOrEqual(3);
  expect(() => run({ schedule, sizes: [1, 1, 1], exhausted: "drop" }, 3, 2, 2)).toThrow(
    "every source with a weight has ended before step 1 is full",
  );
  expect(() => run({ schedule, exhausted: "drop" }, 3, 1, 1)).toThrow("needs the sizes");
  expect(() => run({ schedule }, 2, 1, 1)).toThrow("3 weights for 2 sources");
  expect(() => run({ schedule, sizes: [1], exhausted: "drop" }, 3, 1, 1)).toThrow("1 sizes for 3");
});

test("positions beyond 2^31 are exact", () => {
  const far = 2 ** 40;
  const state = { position: far, taken: [far], since: 0, due: [0], weights: [1] };
  const { positions, next } = drawMix({ schedule: [{ step: 0, weights: [1] }] }, state, 7, 2);
  expect([...positions]).toEqual([far, far + 1]);
  expect(next.taken).toEqual([far + 2]);
});

test("sizes that are no counts are refused", () => {
  const options = { schedule: [{ step: 0, weights: [1] }], sizes: [NaN] };
  expect(() => drawMix(options, startMix(1), 0, 1)).toThrow("source 0 has NaN samples");
});

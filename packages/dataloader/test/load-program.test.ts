import fc from "fast-check";
import {
  type EncoderShapes,
  type LoadProgram,
  type SampleMetadata,
  ancestorsOf,
  descendantsOf,
  loadProgram,
  membersOf,
  metadataOf,
  multimodalCosts,
  placeTree,
  textCosts,
} from "@trireme/dataloader";
import { createRng } from "@trireme/core";
import { expect, test } from "vitest";

const tree = placeTree({
  axes: { tp: "same", cp: "sliced", dp: "distinct", pp: "same" },
  sizes: { tp: 2, cp: 2, dp: 4, pp: 2 },
  order: "tp-cp-dp-pp",
});
const base = (globalBatch = 16): LoadProgram =>
  loadProgram({ tree, sources: ["a", "b"], globalBatch, microbatches: 2 });

/** Skewed lengths by a seed. */
function lengths(count: number, seed: number): SampleMetadata[] {
  const rng = createRng(seed);
  return Array.from({ length: count }, () => ({ tokens: Math.ceil(50 * Math.exp(rng.normal())) }));
}

test("each sample is in one microbatch of one share, whatever the primitives say", () => {
  fc.assert(
    fc.property(
      fc.constantFrom("order", "greedy", "karmarkar-karp"),
      fc.constantFrom(1, 2, 4),
      fc.boolean(),
      fc.nat(),
      (method, groupSize, equalCounts, seed) => {
        const planner = base()
          .mix({ schedule: [{ step: 0, weights: [3, 1] }] })
          .distribute("dp", groupSize)
          .cost(textCosts({ linear: 1, quadratic: 0.01 }))
          .balance(method, { equalCounts })
          .plan();
        const draw = planner.draw(planner.start());
        const metadata = lengths(16, seed);
        const plan = planner.decide(draw, metadata);
        expect(planner.decide(draw, metadata)).toEqual(plan);
        const all: number[] = [];
        for (let share = 0; share < 4; share++) {
          let count = 0;
          for (let m = 0; m < 2; m++) {
            const members = membersOf(plan, share, m);
            if (equalCounts) expect(members.length).toBe(2);
            count += members.length;
            all.push(...members);
            // Lineage says the same.
            expect(ancestorsOf(plan.graphs[0]!, "microbatch", share * 2 + m)).toEqual(members);
            // Samples stay within their group of shares.
            for (const sample of members)
              expect(Math.floor(sample / (4 * groupSize))).toBe(Math.floor(share / groupSize));
          }
          if (equalCounts) expect(count).toBe(4);
        }
        expect(all.sort((a, b) => a - b)).toEqual(Array.from({ length: 16 }, (_, i) => i));
      },
    ),
  );
});

test("balancing evens out the shares, and groups of shares less so", () => {
  const imbalance = (program: LoadProgram): number => {
    const planner = program.plan();
    const draw = planner.draw(planner.start());
    return planner.decide(draw, lengths(64, 3)).imbalance;
  };
  const program = base(64);
  const free = { equalCounts: false };
  const none = imbalance(program);
  const within = imbalance(program.distribute("dp", 2).balance("karmarkar-karp", free));
  const over = imbalance(program.distribute("dp").balance("karmarkar-karp", free));
  expect(none).toBeGreaterThan(1.1);
  expect(within).toBeLessThan(none);
  expect(over).toBeLessThan(within);
  expect(over).toBeLessThan(1.02);
});

test("lineage goes from a rank back to its samples, and from a sample to the ranks that have it", () => {
  const planner = base().balance("greedy").plan();
  const plan = planner.decide(planner.draw(planner.start()), lengths(16, 1));
  const [graph] = plan.graphs;
  for (const { rank, share } of tree.places) {
    const samples = [...membersOf(plan, share, 0), ...membersOf(plan, share, 1)];
    expect(ancestorsOf(graph!, "rank", rank)).toEqual(samples.sort((a, b) => a - b));
  }
  const ranks = tree.places
    .filter(({ share }) => share === plan.shareOf[5])
    .map(({ rank }) => rank);
  expect(descendantsOf(graph!, "sample", 5)).toEqual(ranks);
  expect(() => ancestorsOf(graph!, "row", 0)).toThrow(
    'the backbone graph has no state "row"; it has sample, microbatch, share, rank',
  );
  expect(() => ancestorsOf(graph!, "share", 4)).toThrow("share 4 is outside 0..3");
  expect(() => ancestorsOf(graph!, "share", 0, "rank")).toThrow("rank comes after share");
  expect(() => descendantsOf(graph!, "rank", 0, "sample")).toThrow("sample comes before rank");
});

test("ranks along a broadcast axis get their data from the first of them", () => {
  const { deliveries } = base().broadcastAt("tp").broadcastAt("pp").plan();
  expect(deliveries.length).toBe(8);
  const reached = deliveries.flatMap(({ readers, relays }) => {
    expect(readers.length).toBe(1);
    for (const [from] of relays) expect(readers).toContain(from);
    return [...readers, ...relays.map(([, to]) => to)];
  });
  expect(reached.sort((a, b) => a - b)).toEqual(tree.places.map(({ rank }) => rank));
  for (const { share, slice, readers, relays } of deliveries) {
    for (const rank of [...readers, ...relays.map(([, to]) => to)])
      expect(tree.places[rank]).toMatchObject({ share, slice });
  }
  // Only along pipelines: both tensor ranks of the first stage read.
  expect(base().broadcastAt("pp").plan().deliveries[0]).toEqual({
    share: 0,
    slice: 0,
    readers: [0, 1],
    relays: [
      [0, 16],
      [1, 17],
    ],
  });
});

const shapes: EncoderShapes = {
  patch: 14,
  merge: 2,
  temporalPatch: 2,
  audioFrames: 50,
  audioMerge: 4,
};
const multimodal = Array.from({ length: 16 }, (_, i): SampleMetadata =>
  metadataOf(
    [
      { kind: "text", tokens: 100 + 10 * i },
      // Every fourth sample, all on the first share when dealt in order, is full of images.
      ...Array.from(
        { length: i < 4 ? 6 : i % 3 },
        () => ({ kind: "image", width: 448, height: 448 }) as const,
      ),
      ...(i % 5 === 0 ? [{ kind: "audio", seconds: 8 } as const] : []),
    ],
    shapes,
  ),
);

test("hybrid balancing deals parts over all encoders, apart from their samples", () => {
  const work = { linear: 1, quadratic: 0.001 };
  const costOf = multimodalCosts(shapes, { encoder: work, backbone: work });
  const planOf = (method: "order" | "greedy", level: "backbone" | "encoder" | "hybrid") => {
    const planner = base().cost(costOf).balance(method, { level, equalCounts: false }).plan();
    return planner.decide(planner.draw(planner.start()), multimodal);
  };
  const inOrder = planOf("order", "hybrid");
  const balanced = planOf("greedy", "hybrid");
  expect(inOrder.encoders.map(({ modality, moved }) => [modality, moved])).toEqual([
    ["image", 0],
    ["audio", 0],
  ]);
  const [before, after] = [inOrder.encoders[0]!, balanced.encoders[0]!];
  expect(after.imbalance).toBeLessThan(before.imbalance);
  // 36 equal images over 32 ranks: two is the least that the fullest can have.
  expect(after.imbalance).toBeCloseTo((2 * 32) / after.sampleOf.length, 9);
  expect(after.moved).toBeGreaterThan(0);
  // The backbone is balanced as if there were no encoders.
  expect(balanced.imbalance).toBeCloseTo(planOf("greedy", "backbone").imbalance, 9);
  // Each part is encoded once, and its lineage leads to its sample.
  const graph = balanced.graphs[1]!;
  expect([graph.modality, ...graph.states.map(({ name }) => name)]).toEqual([
    "image",
    "sample",
    "part",
    "rank",
  ]);
  after.sampleOf.forEach((sample, part) => {
    expect(ancestorsOf(graph, "part", part)).toEqual([sample]);
    expect(descendantsOf(graph, "part", part)).toEqual([after.rankOf[part]]);
  });
  // The encoder level deals whole samples by their images.
  const byEncoder = planOf("greedy", "encoder");
  const images = (share: number): number =>
    [...byEncoder.shareOf].reduce(
      (sum, s, i) =>
        s === share
          ? sum + multimodal[i]!.parts!.filter(({ kind }) => kind === "image").length
          : sum,
      0,
    );
  const most = Math.max(...[0, 1, 2, 3].map(images));
  expect(most).toBeLessThanOrEqual(13);
  expect(byEncoder.encoders).toEqual([]);
});

test("a program that does not fit its tree is refused with what would", () => {
  expect(() => base().distribute("tp")).toThrow(
    "distribute over axis tp: its ranks' data is same, not distinct; use dp",
  );
  expect(() => base().distribute("ep")).toThrow("the tree has no such axis; use dp");
  expect(() => base().distribute("dp", 3)).toThrow("groups of 3 shares do not divide the 4");
  expect(() => base().broadcastAt("cp")).toThrow("is sliced, not same; use tp or pp");
  expect(() => base(20).plan()).toThrow(
    "global batch 20 is not a multiple of shares(4) x microbatches(2) = 8; the nearest is 24",
  );
  expect(() => base(18).balance("greedy", { equalCounts: false }).plan()).toThrow(
    "global batch 18 is not a multiple of shares(4); the nearest is 20",
  );
  expect(() => loadProgram({ tree, sources: [], globalBatch: 8 }).plan()).toThrow("no sources");
  expect(() => loadProgram({ tree, sources: ["a", "a"], globalBatch: 8 }).plan()).toThrow(
    'two sources are named "a"',
  );
  const planner = base().plan();
  expect(() => planner.decide(planner.draw(planner.start()), [])).toThrow(
    "step 0: metadata of 0 samples for a global batch of 16",
  );
  const plan = planner.decide(planner.draw(planner.start()), lengths(16, 1));
  expect(() => membersOf(plan, 4, 0)).toThrow("the plan has 4 shares of 2");
});

test("a mixture that does not fit its sources is refused with the program, not at the first step", () => {
  const program = loadProgram({ tree: placeTree([]), sources: ["a", "b"], globalBatch: 2 });
  expect(() => program.mix({ schedule: [{ step: 0, weights: [1] }] }).plan()).toThrow(
    "1 weights for 2 sources",
  );
  expect(() => program.mix({ schedule: [] }).plan()).toThrow("a curriculum without points");
});

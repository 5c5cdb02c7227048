import fc from "fast-check";
import { expect, test } from "vitest";
import { type PlaceAxis, type PlaceMesh, placeTree, receiversOf } from "@trireme/dataloader";

test("tensor ranks share, context ranks slice, data ranks differ", () => {
  const tree = placeTree([
    { name: "tp", size: 2, data: "same" },
    { name: "cp", size: 2, data: "sliced" },
    { name: "dp", size: 2, data: "distinct" },
  ]);
  expect([tree.ranks, tree.shares, tree.slices, tree.copies]).toEqual([8, 2, 2, 2]);
  expect(tree.places.map(({ share, slice, fetcher }) => `${share}${slice}${fetcher}`)).toEqual([
    "000",
    "000",
    "012",
    "012",
    "104",
    "104",
    "116",
    "116",
  ]);
  expect(receiversOf(tree, 2)).toEqual([3]);
  expect(receiversOf(tree, 3)).toEqual([]);
});

test("each share and slice is fetched once and reaches every rank that needs it", () => {
  const axes = fc.array(
    fc.tuple(fc.integer({ min: 1, max: 4 }), fc.constantFrom("distinct", "sliced", "same")),
    { maxLength: 5 },
  );
  fc.assert(
    fc.property(axes, (list) => {
      const tree = placeTree(
        list.map(([size, data], i): PlaceAxis => ({ name: `a${i}`, size, data })),
      );
      const fetchers = tree.places.filter(({ rank, fetcher }) => rank === fetcher);
      expect(fetchers.length).toBe(tree.shares * tree.slices);
      expect(new Set(fetchers.map(({ share, slice }) => `${share} ${slice}`)).size).toBe(
        fetchers.length,
      );
      for (const { rank, share, slice, fetcher } of tree.places) {
        expect(tree.places[fetcher]).toEqual({ rank: fetcher, share, slice, fetcher });
        expect(fetcher).toBeLessThanOrEqual(rank);
      }
      const reached = fetchers.flatMap(({ rank }) => [rank, ...receiversOf(tree, rank)]);
      expect(reached.sort((a, b) => a - b)).toEqual(tree.places.map(({ rank }) => rank));
    }),
  );
});

test("axes that make no sense are refused", () => {
  expect(() => placeTree([{ name: "tp", size: 0, data: "same" }])).toThrow("axis tp has size 0");
  const tp: PlaceAxis = { name: "tp", size: 1, data: "same" };
  expect(() => placeTree([tp, tp])).toThrow("axis tp comes twice");
  expect(placeTree([]).places).toEqual([{ rank: 0, share: 0, slice: 0, fetcher: 0 }]);
});

test("a mesh by sizes and order is the same tree as its axes", () => {
  const axes = { tp: "same", cp: "sliced", dp: "distinct" } as const;
  const mesh = placeTree({ axes, sizes: { tp: 2, dp: 3 }, order: "tp-cp-dp" });
  expect(mesh).toEqual(
    placeTree([
      { name: "tp", size: 2, data: "same" },
      { name: "cp", size: 1, data: "sliced" },
      { name: "dp", size: 3, data: "distinct" },
    ]),
  );
  expect(placeTree({ axes, sizes: {}, order: "" }).ranks).toBe(1);
  expect(() => placeTree({ axes, sizes: { tpp: 2 }, order: "tp-dp" })).toThrow(
    'a size is given for "tpp", but the order "tp-dp" has no such axis; did you mean "tp"?',
  );
  expect(() => placeTree({ axes, sizes: {}, order: "tp-pp" })).toThrow(
    'the order "tp-pp" has axis "pp", but how it shares data is not given; given are: tp, cp, dp',
  );
});

test("a way to share data that there is not is refused with those that there are", () => {
  const mesh: unknown = { axes: { dp: "shared" }, sizes: { dp: 2 }, order: "dp" };
  expect(() => placeTree(mesh as PlaceMesh)).toThrow(
    'axis dp shares data as "shared"; use distinct, sliced, same',
  );
});

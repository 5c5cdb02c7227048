import fc from "fast-check";
import { expect, test } from "vitest";
import { type Mesh, coordinate, defineMesh, groupOf, rankAt } from "@trireme/topology";

const names = ["tp", "cp", "ep", "dp", "pp"];
const meshes = fc
  .array(fc.integer({ min: 1, max: 7 }), { maxLength: names.length })
  .map((sizes) => defineMesh(sizes.map((size, i) => ({ name: names[i]!, size }))));
const meshWithRank = meshes.chain((mesh) =>
  fc.tuple(fc.constant(mesh), fc.integer({ min: 0, max: mesh.ranks - 1 })),
);

test("rank to coordinate is a bijection", () => {
  fc.assert(
    fc.property(meshWithRank, ([mesh, rank]) => {
      expect(rankAt(mesh, coordinate(mesh, rank))).toBe(rank);
    }),
  );
});

test("the first axis varies fastest", () => {
  const mesh = defineMesh([
    { name: "tp", size: 2 },
    { name: "pp", size: 3 },
  ]);
  expect([0, 1, 2, 3, 4, 5].map((r) => coordinate(mesh, r).join(""))).toEqual([
    "00",
    "10",
    "01",
    "11",
    "02",
    "12",
  ]);
});

/** The definition, by brute force: all ranks whose other coordinates are equal. */
function groupByDefinition(mesh: Mesh, rank: number, axes: readonly string[]): number[] {
  const mine = coordinate(mesh, rank);
  return Array.from({ length: mesh.ranks }, (_, r) => r).filter((r) =>
    coordinate(mesh, r).every((c, i) => axes.includes(mesh.axes[i]!.name) || c === mine[i]),
  );
}

test("a group holds the ranks that share every other coordinate, ascending", () => {
  fc.assert(
    fc.property(meshWithRank, fc.subarray(names), ([mesh, rank], wanted) => {
      const axes = wanted.filter((name) => mesh.axes.some((a) => a.name === name));
      expect(groupOf(mesh, rank, axes)).toEqual(groupByDefinition(mesh, rank, axes));
    }),
    { numRuns: 50 },
  );
});

test("the groups of any axes partition the ranks", () => {
  fc.assert(
    fc.property(meshes, fc.subarray(names), (mesh, wanted) => {
      const axes = wanted.filter((name) => mesh.axes.some((a) => a.name === name));
      const size = mesh.axes.reduce((p, a) => (axes.includes(a.name) ? p * a.size : p), 1);
      const seen = new Uint8Array(mesh.ranks);
      for (let rank = 0; rank < mesh.ranks; rank++) {
        const group = groupOf(mesh, rank, axes);
        if (group[0] !== rank) continue;
        expect(group).toHaveLength(size);
        for (const member of group) seen[member]!++;
      }
      expect(seen.every((times) => times === 1)).toBe(true);
    }),
    { numRuns: 40 },
  );
});

test("meshes far beyond 2^31 ranks count exactly", () => {
  const mesh = defineMesh([
    { name: "tp", size: 3 },
    { name: "dp", size: 2 ** 40 },
  ]);
  const last = mesh.ranks - 1;
  expect(coordinate(mesh, last)).toEqual([2, 2 ** 40 - 1]);
  expect(groupOf(mesh, last, "tp")).toEqual([last - 2, last - 1, last]);
});

test.each([
  [[{ name: "tp", size: 0 }], 'axis "tp" has size 0; a size is an integer from 1 up'],
  [[{ name: "tp", size: 1.5 }], 'axis "tp" has size 1.5'],
  [[{ name: "", size: 2 }], "no name"],
  [
    [
      { name: "tp", size: 2 },
      { name: "tp", size: 2 },
    ],
    'axis "tp" stands twice',
  ],
  [
    [
      { name: "tp", size: 2 ** 30 },
      { name: "pp", size: 2 ** 30 },
    ],
    "tp(1073741824) x pp(1073741824)",
  ],
])("a mesh of %j is refused", (axes, message) => {
  expect(() => defineMesh(axes)).toThrow(message);
});

test("ranks, coordinates and axes outside the mesh are refused", () => {
  const mesh = defineMesh([{ name: "tp", size: 4 }]);
  expect(() => coordinate(mesh, 4)).toThrow("rank 4 is outside the mesh's 0..3");
  expect(() => coordinate(mesh, -1)).toThrow("rank -1");
  expect(() => rankAt(mesh, [4])).toThrow('coordinate 4 on axis "tp" is outside 0..3');
  expect(() => rankAt(mesh, [0, 0])).toThrow("has 2 numbers, but the mesh has 1 axes");
  expect(() => groupOf(mesh, 0, "pt")).toThrow('no axis "pt"; did you mean "tp"?');
});

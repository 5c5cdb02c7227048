import fc from "fast-check";
import { expect, test } from "vitest";
import {
  defineStagedMesh,
  layerGroups,
  stagedCoordinate,
  stagedLeaders,
  stagedTensorGroup,
} from "@trireme/topology";

const mesh = defineStagedMesh([
  [
    { width: 4, layers: 5 },
    { width: 2, layers: 3 },
  ],
  [{ width: 1, layers: 8 }],
]);

test("ranks run stage by stage, pipeline by pipeline", () => {
  expect(mesh).toMatchObject({ ranks: 7, layers: 8 });
  expect(stagedCoordinate(mesh, 5)).toEqual({ pipeline: 0, stage: 1, shard: 1 });
  expect(stagedCoordinate(mesh, 6)).toEqual({ pipeline: 1, stage: 0, shard: 0 });
  expect(stagedTensorGroup(mesh, 2)).toEqual([0, 1, 2, 3]);
  expect(stagedLeaders(mesh, 5)).toEqual([0, 4]);
});

test("a layer's pieces are summed by the ranks that hold them, in every pipeline", () => {
  expect(layerGroups(mesh, 0).map((p) => p.ranks)).toEqual([
    [0, 6],
    [1, 6],
    [2, 6],
    [3, 6],
  ]);
  expect(layerGroups(mesh, 5).map((p) => p.ranks)).toEqual([
    [4, 6],
    [5, 6],
  ]);
});

test("the tensor groups partition the ranks, whatever the widths", () => {
  const pipelines = fc.array(
    fc
      .array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 4 })
      .map((widths) =>
        widths.map((width, i) => ({ width, layers: i === 0 ? 5 - widths.length : 1 })),
      ),
    { minLength: 1, maxLength: 4 },
  );
  fc.assert(
    fc.property(pipelines, (stages) => {
      const m = defineStagedMesh(stages);
      const seen = new Set<number>();
      for (let rank = 0; rank < m.ranks; rank++) {
        const group = stagedTensorGroup(m, rank);
        expect(group).toContain(rank);
        if (group[0] === rank) for (const r of group) seen.add(r);
      }
      expect(seen.size).toBe(m.ranks);
    }),
  );
});

test("meshes that cannot train one model are refused", () => {
  expect(() => defineStagedMesh([])).toThrow("needs a pipeline");
  expect(() => defineStagedMesh([[{ width: 0, layers: 1 }]])).toThrow("width is 0");
  expect(() => defineStagedMesh([[{ width: 1, layers: 4 }], [{ width: 1, layers: 3 }]])).toThrow(
    "pipeline 1 holds 3 layers, pipeline 0 4",
  );
  const odd = defineStagedMesh([[{ width: 3, layers: 1 }], [{ width: 2, layers: 1 }]]);
  expect(() => layerGroups(odd, 0)).toThrow("a stage of 2 ranks cannot hold whole pieces of 3");
  expect(() => layerGroups(mesh, 8)).toThrow("layer 8 is outside the mesh's 0..7");
  expect(() => stagedCoordinate(mesh, 7)).toThrow("rank 7 is outside the mesh's 0..6");
});

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  coordinate,
  expertCoordinate,
  expertGroupOf,
  foldExperts,
  groupOf,
  meshFromOrder,
  orderOf,
} from "@trireme/topology";

const orders = fc.constantFrom("tp-cp-dp-pp", "tp-cp-pp-dp", "pp-dp-cp-tp", "dp-tp-pp-cp");
const folds = fc
  .record({
    order: orders,
    tp: fc.constantFrom(1, 2, 4),
    cp: fc.constantFrom(1, 2),
    dp: fc.constantFrom(1, 2, 3, 6),
    pp: fc.constantFrom(1, 2, 3),
    etp: fc.constantFrom(1, 2),
    ep: fc.constantFrom(1, 2, 4),
  })
  .filter(({ tp, cp, dp, etp, ep }) => (tp * cp * dp) % (etp * ep) === 0)
  .map(({ order, tp, cp, dp, pp, etp, ep }) =>
    foldExperts(meshFromOrder(order, { tp, cp, dp, pp }), { etp, ep }),
  );

test("expert groups hold the ranks of the same pipeline stage that share the other expert axes", () => {
  fc.assert(
    fc.property(folds, fc.constantFrom("etp", "ep", "edp"), (mesh, axis) => {
      const axes = ["etp", "ep", "edp"];
      const stage = mesh.dense.axes.findIndex((a) => a.name === "pp");
      const all = Array.from({ length: mesh.dense.ranks }, (_, r) => r);
      const place = (r: number) => [
        coordinate(mesh.dense, r)[stage],
        ...expertCoordinate(mesh, r).filter((_, i) => axes[i] !== axis),
      ];
      for (const rank of all.filter((r) => r % 5 === 0)) {
        const mine = place(rank).join();
        expect(expertGroupOf(mesh, rank, axis)).toEqual(
          all.filter((r) => place(r).join() === mine),
        );
      }
    }),
    { numRuns: 60 },
  );
});

test("expert-data groups partition the ranks, and have tp x cp x dp / (etp x ep) members", () => {
  fc.assert(
    fc.property(folds, (mesh) => {
      const size = mesh.experts.axes[2]!.size;
      const seen = new Set<number>();
      for (let rank = 0; rank < mesh.dense.ranks; rank++) {
        const group = expertGroupOf(mesh, rank, "edp");
        expect(group).toHaveLength(size);
        expect(group).toContain(rank);
        if (group[0] === rank) for (const r of group) seen.add(r);
      }
      expect(seen.size).toBe(mesh.dense.ranks);
    }),
    { numRuns: 40 },
  );
});

test("EP of 4 in DP of 8: neighbours exchange tokens, every fourth rank sums gradients", () => {
  const mesh = foldExperts(meshFromOrder("tp-cp-dp-pp", { dp: 8, pp: 2 }), { ep: 4 });
  expect(expertGroupOf(mesh, 5, "ep")).toEqual([4, 5, 6, 7]);
  expect(expertGroupOf(mesh, 5, "edp")).toEqual([1, 5]);
  expect(expertGroupOf(mesh, 13, "edp")).toEqual([9, 13]);
});

test("EP over TP x DP: the dense TP group is a part of the expert group", () => {
  const dense = meshFromOrder("tp-dp-pp", { tp: 2, dp: 4, pp: 2 });
  const mesh = foldExperts(dense, { ep: 8 });
  expect(expertGroupOf(mesh, 9, "ep")).toEqual(expect.arrayContaining(groupOf(dense, 9, "tp")));
  expect(expertGroupOf(mesh, 9, "ep")).toEqual([8, 9, 10, 11, 12, 13, 14, 15]);
  expect(expertGroupOf(mesh, 9, "edp")).toEqual([9]);
});

test("orders name their axes, and unknown sizes are refused with the nearest axis", () => {
  const mesh = meshFromOrder("tp-cp-ep-dp-pp", { tp: 2, pp: 4 });
  expect(orderOf(mesh)).toBe("tp-cp-ep-dp-pp");
  expect(mesh.ranks).toBe(8);
  expect(() => meshFromOrder("tp-dp", { pd: 2 })).toThrow('has no such axis; did you mean "dp"?');
});

test("an EP that does not divide is refused with the nearest that does", () => {
  const dense = meshFromOrder("tp-dp", { tp: 2, dp: 6 });
  expect(() => foldExperts(dense, { ep: 5 })).toThrow(
    "etp(1) x ep(5) does not divide tp(2) x dp(6) = 12; the nearest ep is 4",
  );
});

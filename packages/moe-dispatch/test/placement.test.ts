import fc from "fast-check";
import { expect, test } from "vitest";
import {
  LoadAverage,
  assignReplicas,
  balanceExperts,
  contiguousPlacement,
  definePlacement,
  placeByCost,
  planDispatch,
  planMigration,
  rankLoads,
  tokensPerExpert,
  withSharedExperts,
} from "@trireme/moe-dispatch";
import { normals, randomIds, rows } from "./naive.ts";

test("a migration moves what is new to each rank, and nothing else", () => {
  const from = definePlacement({
    layers: 1,
    experts: 4,
    ranks: 2,
    expertOf: Int32Array.of(0, 1, 1, 2, 3, 0),
  });
  const to = definePlacement({
    layers: 1,
    experts: 4,
    ranks: 2,
    expertOf: Int32Array.of(1, 2, 3, 0, 3, 3),
  });
  const m = planMigration({ from, to, bytesPerExpert: 100 });
  // Rank 0 held 0, 1 and gets 2, 3 new; rank 1 held 2, 3, 0 and gets nothing new.
  expect([...m.experts]).toEqual([2, 3]);
  expect([...m.sources]).toEqual([1, 1]);
  expect([...m.targets]).toEqual([0, 0]);
  expect([m.bytes, [...m.sent], [...m.received]]).toEqual([200, [0, 200], [200, 0]]);
  expect(planMigration({ from, to: from, bytesPerExpert: 100 }).bytes).toBe(0);
});

test("a migration fetches from the cheapest holder, and from the idlest of equals", () => {
  const from = definePlacement({
    layers: 1,
    experts: 2,
    ranks: 4,
    expertOf: Int32Array.of(0, 1, 0, 1),
  });
  const to = definePlacement({
    layers: 1,
    experts: 2,
    ranks: 4,
    expertOf: Int32Array.of(1, 1, 1, 0),
  });
  expect([...planMigration({ from, to, bytesPerExpert: 7 }).sources]).toEqual([1, 3, 0]);
  const cost = (a: number, b: number): number => (Math.floor(a / 2) === Math.floor(b / 2) ? 1 : 10);
  expect([...planMigration({ from, to, bytesPerExpert: 7, cost }).sources]).toEqual([1, 3, 2]);
  expect(() => planMigration({ from, to, bytesPerExpert: 7, cost: () => -1 })).toThrow(
    "is -1; a cost must not be negative",
  );
  const other = contiguousPlacement({ layers: 2, experts: 2, ranks: 1 });
  expect(() => planMigration({ from, to: other, bytesPerExpert: 1 })).toThrow(
    "differ in layers: 1 and 2",
  );
});

test("a migration between any two balanced placements delivers every expert to its ranks", () => {
  fc.assert(
    fc.property(fc.integer(), (seed) => {
      const shape = { layers: 3, replicas: 24, ranks: 6 };
      const [a, b] = [seed, seed + 1].map((s) =>
        balanceExperts({ ...shape, loads: normals(3 * 16, s).map(Math.abs) }),
      );
      const m = planMigration({ from: a!, to: b!, bytesPerExpert: 1 });
      const held = (p: typeof a, layer: number, rank: number): Set<number> =>
        new Set(p!.expertOf.subarray(layer * 24 + rank * 4, layer * 24 + rank * 4 + 4));
      const got = Array.from({ length: 18 }, (_, i) => held(a, Math.floor(i / 6), i % 6));
      m.experts.forEach((e, i) => {
        const [layer, source, target] = [m.layers[i]!, m.sources[i]!, m.targets[i]!];
        expect(held(a, layer, source).has(e)).toBe(true);
        expect(got[layer * 6 + target]!.has(e)).toBe(false);
        got[layer * 6 + target]!.add(e);
      });
      got.forEach((set, i) => {
        for (const e of held(b, Math.floor(i / 6), i % 6)) expect(set.has(e)).toBe(true);
      });
      expect(m.bytes).toBe(m.received.reduce((x, y) => x + y, 0));
      expect(m.bytes).toBe(m.sent.reduce((x, y) => x + y, 0));
    }),
  );
});

test("placement by cost brings experts to the hosts that use them, within the load limit", () => {
  const [ranks, experts] = [4, 8];
  // Host 0 (ranks 0, 1) uses the odd experts, host 1 the even ones.
  const traffic = Float64Array.from({ length: ranks * experts }, (_, i) =>
    (i % experts) % 2 === (Math.floor(i / experts) < 2 ? 1 : 0) ? 10 : 0,
  );
  const cost = (a: number, b: number): number =>
    a === b ? 0 : Math.floor(a / 2) === Math.floor(b / 2) ? 1 : 8;
  const placement = contiguousPlacement({ layers: 1, experts, ranks });
  const { placement: found, before, after } = placeByCost({ placement, traffic, cost });
  expect([...found.expertOf.subarray(0, 4)].every((e) => e % 2 === 1)).toBe(true);
  // Before: of each expert's 20 rows, half the experts sit on the wrong host. After: 10 rows on the
  // rank itself, 10 on its neighbour.
  expect(before).toBe(4 * 20 * 8 + 4 * 10);
  expect(after).toBe(8 * 10);
  const loads = new Float64Array(experts).fill(20);
  expect([...rankLoads(found, loads)]).toEqual([40, 40, 40, 40]);
  expect(() => placeByCost({ placement, traffic, cost: () => Number.NaN })).toThrow(
    "cost(0, 0) is NaN",
  );
});

test("placement by cost never costs more, never passes the limit, never doubles an expert on a rank", () => {
  fc.assert(
    fc.property(fc.integer(), fc.constantFrom(0, 0.1, 1), (seed, tolerance) => {
      const [ranks, experts, layers] = [6, 12, 2];
      const traffic = normals(layers * ranks * experts, seed).map((x) =>
        Math.floor(Math.abs(x) * 100),
      );
      const loads = new Float64Array(layers * experts);
      traffic.forEach((n, i) => (loads[Math.floor(i / 72) * experts + (i % experts)]! += n));
      const placement = balanceExperts({ loads, layers, replicas: 18, ranks });
      const r = placeByCost({ placement, traffic, tolerance, cost: (a, b) => Math.abs(a - b) });
      expect(r.after).toBeLessThanOrEqual(r.before);
      rows(r.placement.expertOf, 3).forEach((slots) => expect(new Set(slots).size).toBe(3));
      for (let layer = 0; layer < layers; layer++) {
        const of = (p: typeof placement): number[] => rows(rankLoads(p, loads), ranks)[layer]!;
        const mean = of(placement).reduce((a, b) => a + b, 0) / ranks;
        const limit = Math.max(mean * (1 + tolerance), ...of(placement));
        expect(Math.max(...of(r.placement))).toBeLessThanOrEqual(limit + 1e-9);
      }
    }),
  );
});

test("replicas share an expert's rows evenly in turn, and near ones come first", () => {
  const placement = definePlacement({
    layers: 1,
    experts: 2,
    ranks: 4,
    expertOf: Int32Array.of(0, 1, 0, 0),
  });
  const expertIds = new Int32Array(40); // every token wants expert 0
  const inTurn = assignReplicas({ placement, layer: 0, expertIds, topK: 1, policy: "in-turn" });
  expect([...tokensPerExpert(inTurn, 4)]).toEqual([14, 0, 13, 13]);
  const nearest = assignReplicas({
    placement,
    layer: 0,
    expertIds,
    topK: 1,
    policy: "nearest",
    ranksPerHost: 2,
  });
  // Ranks 0, 2 and 3 hold it; rank 1 uses its host's copy, on rank 0.
  expect([...nearest]).toEqual([...Array(20).fill(0), ...Array(10).fill(2), ...Array(10).fill(3)]);
  const all = randomIds({ tokens: 50, topK: 2, experts: 2, seed: 1, holes: true });
  const replicas = assignReplicas({
    placement,
    layer: 0,
    expertIds: all,
    topK: 2,
    policy: "nearest",
  });
  replicas.forEach((slot, i) => expect(slot < 0 ? -1 : placement.expertOf[slot]).toBe(all[i]));
});

test("a shared expert with a replica on each rank sends no row away", () => {
  const routing = {
    tokens: 8,
    experts: 4,
    topK: 1,
    expertIds: Int32Array.from({ length: 8 }, (_, t) => Math.floor(t / 2)),
    weights: new Float64Array(8).fill(1),
  };
  const shared = withSharedExperts(routing, { shared: 1 });
  const placement = definePlacement({
    layers: 1,
    experts: 5,
    ranks: 4,
    expertOf: Int32Array.of(0, 4, 1, 4, 2, 4, 3, 4),
  });
  const expertIds = assignReplicas({
    placement,
    layer: 0,
    expertIds: shared.expertIds,
    topK: 2,
    policy: "nearest",
  });
  const plan = planDispatch({ expertIds, topK: 2, experts: 8, ranks: 4 });
  expect(rows(plan.splits, 4)).toEqual([
    [4, 0, 0, 0],
    [0, 4, 0, 0],
    [0, 0, 4, 0],
    [0, 0, 0, 4],
  ]);
});

test("the moving average starts at the first loads and follows", () => {
  const average = new LoadAverage(2, 0.9);
  expect([...average.loads]).toEqual([0, 0]);
  average.update([10, 0]);
  expect(average.loads[0]).toBeCloseTo(10, 12);
  average.update([0, 10]);
  // Weights 0.09 and 0.1 of 0.19.
  expect(average.loads[0]).toBeCloseTo(900 / 190, 12);
  expect(average.loads[1]).toBeCloseTo(1000 / 190, 12);
  expect(() => new LoadAverage(2, 1)).toThrow("decay is 1");
});

test("a load that is none stays out of the moving average", () => {
  const average = new LoadAverage(2, 0.5);
  average.update([1, 2]);
  for (const odd of [NaN, -1, Infinity]) {
    expect(() => average.update([1, odd])).toThrow(`load 1 is ${odd}`);
  }
  expect([...average.loads]).toEqual([1, 2]);
});

test("traffic that is none is refused: it would be swapped for ever", () => {
  const placement = contiguousPlacement({ layers: 1, experts: 2, ranks: 2 });
  const cost = (from: number, to: number): number => Number(from !== to);
  expect(() => placeByCost({ placement, traffic: [1, NaN, 1, 1], cost })).toThrow(
    "traffic 1 is NaN",
  );
});

test("replicas are numbered from 0, each once", () => {
  const o = { layers: 1, experts: 2, ranks: 1, expertOf: Int32Array.of(0, 1, 1) };
  expect(() => definePlacement({ ...o, replicaOf: Int32Array.of(1, 0, 1) })).toThrow(
    "slot 0 of layer 0 is replica 1 of expert 0, which has 1; its replicas are 0..0, each once",
  );
  expect(() => definePlacement({ ...o, replicaOf: Int32Array.of(0, 1, 1) })).toThrow(
    "slot 2 of layer 0 is replica 1 of expert 1, which has 2; its replicas are 0..1, each once",
  );
});

test("placements that are none are refused", () => {
  const o = { layers: 1, experts: 2, ranks: 2 };
  expect(() => definePlacement({ ...o, expertOf: Int32Array.of(0, 0) })).toThrow(
    "layer 0 has no replica of expert 1",
  );
  expect(() => definePlacement({ ...o, expertOf: Int32Array.of(0, 2) })).toThrow(
    "slot 1 of layer 0 holds expert 2",
  );
  expect(() => definePlacement({ ...o, expertOf: Int32Array.of(0, 1, 1) })).toThrow(
    "3 replicas do not divide over 2 ranks",
  );
});

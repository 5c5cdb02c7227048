import { expect, test } from "vitest";
import { collisions, expectedCollisions, megascaleFabric, routeFlows } from "@trireme/topology";

/**
 * Every port sends to the same rail of a host in another pod, so that all ToR uplinks are under
 * full load; averaged over seeds.
 */
function torUplinks(split: boolean) {
  const fabric = megascaleFabric({ hosts: 1024, split });
  const n = fabric.graph.endpoints;
  const from = Array.from({ length: n }, (_, e) => e);
  const flows = { from, to: from.map((e) => (e + n / 2) % n) };
  const seeds = 4;
  let [share, meanRate] = [0, 0];
  for (let seed = 0; seed < seeds; seed++) {
    const [tor] = collisions(fabric, routeFlows(fabric, flows, { kind: "ecmp", seed }));
    expect(tor).toMatchObject({ from: "tor", to: "aggregation", flows: n });
    share += tor!.share / seeds;
    meanRate += tor!.meanRate / seeds;
  }
  return { share, meanRate };
}

test("at full load a uniform hash collides 0.626 of MegaScale's flows without the split", () => {
  const expected = expectedCollisions({ flows: 32, uplinks: 32, fit: 1 });
  expect(expected.share).toBeCloseTo(1 - (31 / 32) ** 31, 12);
  expect(Math.abs(expected.share - 0.626)).toBeLessThan(0.001);
  // 1 - (31/32)^32: the part of the uplinks that carry anything.
  expect(expected.meanRate).toBeCloseTo(1 - (31 / 32) ** 32, 12);
  const measured = torUplinks(false);
  expect(Math.abs(measured.share - 0.626)).toBeLessThan(0.01);
  expect(Math.abs(measured.meanRate - expected.meanRate)).toBeLessThan(0.01);
});

test("and 0.590 with the split, at a higher mean rate", () => {
  const expected = expectedCollisions({ flows: 64, uplinks: 32, fit: 2 });
  expect(Math.abs(expected.share - 0.59)).toBeLessThan(0.001);
  const measured = torUplinks(true);
  expect(Math.abs(measured.share - 0.59)).toBeLessThan(0.01);
  expect(Math.abs(measured.meanRate - expected.meanRate)).toBeLessThan(0.01);
  expect(expected.meanRate).toBeGreaterThan(0.73);
});

test("static rails and one flow alone collide with nothing", () => {
  const fabric = megascaleFabric({ hosts: 512 });
  const one = collisions(fabric, routeFlows(fabric, { from: [0], to: [4088] }));
  expect(one.map((row) => row.collided)).toEqual([0, 0]);
  expect(one[0]).toMatchObject({ flows: 1, mostFlows: 1, meanRate: 1 });
});

test("one uplink takes every flow; counts that make no sense are refused", () => {
  expect(expectedCollisions({ flows: 3, uplinks: 1, fit: 1 })).toEqual({
    share: 1,
    meanRate: 1 / 3,
  });
  expect(expectedCollisions({ flows: 1, uplinks: 5, fit: 1 })).toEqual({ share: 0, meanRate: 1 });
  expect(() => expectedCollisions({ flows: 0, uplinks: 1, fit: 1 })).toThrow("flows is 0");
});

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type Fabric,
  type RoutingPolicy,
  dragonflyFabric,
  fairRates,
  fatTreeFabric,
  mostLinks,
  nextLinks,
  routeFlows,
  routeOf,
  slingshotFabric,
  targetOf,
  withLinkStates,
} from "@trireme/topology";

// p = 2, a = 4, h = 2: nine groups of eight endpoints, one cable between any two groups.
const balanced = dragonflyFabric({ endpoints: 72, ports: 2, routers: 4, globals: 2, bandwidth: 1 });
const perGroup = 8;
/** Every endpoint sends to the same place in the next group: one cable's worth of shortest paths. */
const worst = {
  from: Array.from({ length: 72 }, (_, e) => e),
  to: Array.from({ length: 72 }, (_, e) => (e + perGroup) % 72),
};

/** Mean fair rate of the flows, of a port. */
const meanRate = (fabric: Fabric, flows: typeof worst, policy: RoutingPolicy) => {
  const rates = fairRates(fabric, routeFlows(fabric, flows, policy));
  return rates.reduce((sum, r) => sum + r, 0) / rates.length;
};

test("neighbouring groups: shortest paths give an eighth of a port, detours most of a half", () => {
  // Eight ports share the one cable to the next group.
  expect(meanRate(balanced, worst, { kind: "ecmp" })).toBeCloseTo(1 / 8, 12);
  expect(meanRate(balanced, worst, { kind: "adaptive" })).toBeCloseTo(1 / 8, 12);
  // Two global hops a flow over eight cables a group bound the mean by 1/2; the draw is uneven.
  let valiant = 0;
  let ugal = 0;
  for (let seed = 0; seed < 10; seed++) {
    valiant += meanRate(balanced, worst, { kind: "valiant", seed }) / 10;
    ugal += meanRate(balanced, worst, { kind: "ugal", seed }) / 10;
  }
  expect(valiant).toBeGreaterThan(2 / 8);
  expect(valiant).toBeLessThan(1 / 2);
  expect(ugal).toBeGreaterThan(valiant);
});

test("a quiet dragonfly: UGAL stays on shortest paths, Valiant pays a second global hop", () => {
  const one = { from: [0], to: [71] };
  const shortest = routeFlows(balanced, one).links.length;
  expect(routeFlows(balanced, one, { kind: "ugal" }).links).toHaveLength(shortest);
  expect(routeFlows(balanced, one, { kind: "valiant" }).links.length).toBeGreaterThan(shortest);
});

test("spread traffic: UGAL gives more than Valiant, whose detours use the cables twice", () => {
  // Endpoint i of a group sends to group + 1 + i: every pair of groups has one flow.
  const spread = {
    from: worst.from,
    to: worst.from.map((e) => (e + perGroup * (1 + (e % perGroup))) % 72),
  };
  const [ugal, valiant] = (["ugal", "valiant"] as const).map((kind) =>
    meanRate(balanced, spread, { kind }),
  );
  expect(ugal).toBeGreaterThan(1.3 * valiant!);
});

const shapes = fc
  .record({
    groups: fc.integer({ min: 1, max: 6 }),
    ports: fc.integer({ min: 1, max: 3 }),
    routers: fc.integer({ min: 2, max: 4 }),
    missing: fc.nat({ max: 2 }),
  })
  .map(({ groups, ports, routers, missing }) =>
    dragonflyFabric({
      endpoints: Math.max(1, groups * ports * routers - missing),
      ports,
      routers,
      globals: Math.ceil(groups / routers) + 1,
      bandwidth: 1,
    }),
  );

test("a detour is local, global, local, global, local at most, by exactly one other group", () => {
  fc.assert(
    fc.property(shapes, fc.constantFrom("valiant", "ugal"), fc.nat(), (fabric, kind, seed) => {
      const { graph, shape } = fabric;
      if (shape.kind !== "dragonfly") throw new Error("expected a dragonfly");
      const groupOf = (node: number) =>
        Math.floor(
          (node < graph.endpoints ? Math.floor(node / shape.ports) : node - graph.endpoints) /
            shape.routers,
        );
      const ends = Array.from({ length: graph.endpoints }, (_, e) => e);
      const flows = { from: ends.flatMap((e) => ends.map(() => e)), to: ends.flatMap(() => ends) };
      const routes = routeFlows(fabric, flows, { kind, seed });
      for (let f = 0; f < routes.flows; f++) {
        const [from, to] = [flows.from[f]!, flows.to[f]!];
        const route = routeOf(routes, f);
        const nodes = [from, ...Array.from(route, (link) => targetOf(graph, link))];
        const groups = nodes.map(groupOf).filter((g, i, all) => g !== all[i - 1]);
        const apart = groupOf(from) !== groupOf(to);
        expect(nodes.at(-1)).toBe(to);
        expect(route.length).toBeLessThanOrEqual(2 + 5);
        expect(new Set(groups).size).toBe(groups.length);
        const detours = apart && shape.groups > 2;
        if (kind === "valiant") expect(groups).toHaveLength(detours ? 3 : apart ? 2 : 1);
        else expect(groups.length).toBeLessThanOrEqual(detours ? 3 : 2);
      }
    }),
    { numRuns: 25 },
  );
});

test("a detour to a group that is cut off is not taken", () => {
  // All global cables of group 2 are down; of three groups it is the only one in between.
  const fabric = dragonflyFabric({ endpoints: 12, ports: 1, routers: 4, globals: 2, bandwidth: 1 });
  const { graph } = fabric;
  const inTwo = (node: number) => node >= 8 && (node < 12 || node >= 12 + 8);
  const changes = Array.from({ length: graph.cables }, (_, cable) => cable)
    .filter((c) => inTwo(graph.a[c]!) !== inTwo(graph.b[c]!))
    .map((cable) => ({ cable, state: "down" as const }));
  const cut = withLinkStates(fabric, changes);
  const routes = routeFlows(cut, { from: [0], to: [4] }, { kind: "valiant" });
  expect(routes.links.length).toBeLessThanOrEqual(2 + 3);
});

test("other fabrics have no third group", () => {
  const tree = fatTreeFabric({ hosts: 4, radix: 4, levels: 2, bandwidth: 1 });
  expect(() => routeFlows(tree, { from: [0], to: [1] }, { kind: "ugal" })).toThrow(
    "ugal routes go by a third group of a dragonfly, but fat-tree-4 is of shape clos; use ecmp, adaptive or static",
  );
});

test("on Frontier's Slingshot a shift by one group gains from detours", () => {
  const fabric = slingshotFabric({ hosts: 1024 });
  const n = fabric.graph.endpoints;
  const from = Array.from({ length: n }, (_, e) => e);
  const flows = { from, to: from.map((e) => (e + 512) % n) };
  expect(meanRate(fabric, flows, { kind: "ugal" })).toBeGreaterThan(
    1.2 * meanRate(fabric, flows, { kind: "adaptive" }),
  );
});

test("more cables between two groups than routers: the way to a gateway is one choice, however many it holds", () => {
  const fabric = dragonflyFabric({ endpoints: 4, ports: 1, routers: 2, globals: 3, bandwidth: 1 });
  const { graph } = fabric;
  const next = nextLinks(fabric);
  const choices = new Int32Array(2 * graph.cables);
  for (let node = 0; node < graph.nodes; node++) {
    for (let to = 0; to < graph.endpoints; to++) {
      const count = next(node, to, choices);
      expect(new Set(choices.subarray(0, count)).size).toBe(count);
      expect(count).toBeLessThanOrEqual(mostLinks(fabric));
    }
  }
  const ends = [0, 1, 2, 3];
  const flows = { from: ends.flatMap((e) => ends.map(() => e)), to: ends.flatMap(() => ends) };
  for (const kind of ["ecmp", "adaptive", "valiant", "ugal"] as const) {
    for (let seed = 0; seed < 64; seed++) {
      const routes = routeFlows(fabric, flows, { kind, seed });
      for (let f = 0; f < routes.flows; f++) {
        const last = routeOf(routes, f).at(-1);
        if (flows.from[f] !== flows.to[f]) expect(targetOf(graph, last!)).toBe(flows.to[f]);
      }
    }
  }
});

import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type Fabric,
  type RoutingPolicy,
  closFabric,
  dragonflyFabric,
  explicitFabric,
  fatTreeFabric,
  hopLatency,
  latencyAlong,
  linkLoads,
  llama3Fabric,
  megascaleFabric,
  mostLinks,
  nextLinks,
  routeFlows,
  routeOf,
  searchedLinks,
  singleSwitchFabric,
  sourceOf,
  targetOf,
  torusFabric,
  withLinkStates,
} from "@trireme/topology";

const treeFabrics = fc
  .record({
    hosts: fc.integer({ min: 1, max: 16 }),
    nics: fc.constantFrom(1, 2),
    rails: fc.boolean(),
    levels: fc.constantFrom(2, 3),
  })
  .map((o) => fatTreeFabric({ ...o, radix: 8, bandwidth: 1 }));
const tori = fc
  .array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 3 })
  .map((sizes) => torusFabric({ sizes, bandwidth: 1 }));
const dragonflies = fc
  .record({
    endpoints: fc.integer({ min: 1, max: 60 }),
    ports: fc.integer({ min: 1, max: 3 }),
    routers: fc.integer({ min: 2, max: 5 }),
  })
  .map(({ endpoints, ports, routers }) => {
    const globals = Math.ceil(endpoints / (ports * routers * routers)) + 1;
    return dragonflyFabric({ endpoints, ports, routers, globals, bandwidth: 1 });
  });
const stars = fc
  .integer({ min: 1, max: 12 })
  .map((hosts) => singleSwitchFabric({ hosts, bandwidth: 1 }));
/** Rails, a port split at the ToR and several cables between two switches, as in MegaScale's. */
const splits = fc
  .record({
    hosts: fc.integer({ min: 1, max: 16 }),
    nics: fc.integer({ min: 1, max: 3 }),
    parents: fc.integer({ min: 1, max: 3 }),
    links: fc.integer({ min: 1, max: 2 }),
  })
  .map(({ hosts, nics, parents, links }) =>
    closFabric({
      name: "split",
      hosts,
      nics,
      rails: true,
      levels: [
        { name: "tor", children: 3, bandwidth: 1 },
        { name: "aggregation", children: 2 * nics, parents, links, bandwidth: 2 },
        { name: "core", children: 8, parents: 2, bandwidth: 2 },
      ],
    }),
  );
/** Any connected graph: a random tree of switches, endpoints anywhere on it, and more cables. */
const graphs = fc
  .record({
    uplinks: fc.array(fc.nat(), { maxLength: 7 }),
    homes: fc.array(fc.nat(), { minLength: 1, maxLength: 8 }),
    more: fc.array(fc.tuple(fc.nat(), fc.nat()), { maxLength: 6 }),
  })
  .map(({ uplinks, homes, more }) => {
    const [endpoints, switches] = [homes.length, uplinks.length + 1];
    const node = (n: number) => endpoints + (n % switches);
    const ends = [
      ...homes.map((home, e) => [e, node(home)] as const),
      ...uplinks.map((up, i) => [endpoints + i + 1, endpoints + (up % (i + 1))] as const),
      ...more.map(([x, y]) => [node(x), node(y)] as const),
    ];
    return explicitFabric({
      endpoints,
      layers: [{ name: "switch", switches }],
      cables: ends.filter(([a, b]) => a !== b).map(([a, b]) => ({ a, b, bandwidth: 1 })),
    });
  });
/** Every kind of fabric that the package builds. */
const fabrics = fc.oneof(treeFabrics, splits, tori, dragonflies, stars, graphs);
const policies = fc.constantFrom<RoutingPolicy>(
  { kind: "ecmp" },
  { kind: "ecmp", seed: 7 },
  { kind: "adaptive" },
  { kind: "static" },
);

/** All pairs of endpoints. */
function allPairs({ graph }: Fabric) {
  const from: number[] = [];
  const to: number[] = [];
  for (let a = 0; a < graph.endpoints; a++) {
    for (let b = 0; b < graph.endpoints; b++) {
      from.push(a);
      to.push(b);
    }
  }
  return { from, to };
}

test("every pair of endpoints has a route: links that join, from source to destination", () => {
  fc.assert(
    fc.property(fabrics, policies, (fabric, policy) => {
      const flows = allPairs(fabric);
      const routes = routeFlows(fabric, flows, policy);
      for (let f = 0; f < routes.flows; f++) {
        let node = flows.from[f]!;
        let joined = true;
        for (const link of routeOf(routes, f)) {
          joined &&= sourceOf(fabric.graph, link) === node;
          node = targetOf(fabric.graph, link);
        }
        expect([joined, node]).toEqual([true, flows.to[f]]);
      }
    }),
    { numRuns: 60 },
  );
});

test("the shape's links are those that a search of the graph finds", () => {
  fc.assert(
    fc.property(fc.oneof(treeFabrics, splits, tori), (fabric) => {
      const room = mostLinks(fabric);
      const [shaped, searched] = [new Int32Array(room), new Int32Array(room)];
      const [byShape, bySearch] = [nextLinks(fabric), searchedLinks(fabric)];
      for (let node = 0; node < fabric.graph.nodes; node++) {
        for (let e = 0; e < fabric.graph.endpoints; e++) {
          const n = byShape(node, e, shaped);
          const m = bySearch(node, e, searched);
          expect(shaped.slice(0, n).toSorted()).toEqual(searched.slice(0, m).toSorted());
        }
      }
    }),
    { numRuns: 30 },
  );
});

test("a minimal dragonfly route is at most local, global, local", () => {
  fc.assert(
    fc.property(dragonflies, (fabric) => {
      const routes = routeFlows(fabric, allPairs(fabric));
      let most = 0;
      for (let f = 0; f < routes.flows; f++) most = Math.max(most, routeOf(routes, f).length);
      expect(most).toBeLessThanOrEqual(2 + 3);
    }),
    { numRuns: 40 },
  );
});

test("hop counts: two inside a MegaScale ToR, four in a pod, six beyond", () => {
  const fabric = megascaleFabric({ hosts: 1024 });
  const to = [8, 1, 64 * 8, 256 * 8];
  const routes = routeFlows(fabric, { from: to.map(() => 0), to });
  expect(to.map((_, f) => routeOf(routes, f).length)).toEqual([2, 4, 4, 6]);
  expect(latencyAlong(fabric, routeOf(routes, 3))).toBeCloseTo(6 * hopLatency, 12);
});

test("static rails carry a full permutation of MegaScale's ports without a collision", () => {
  const fabric = megascaleFabric({ hosts: 512 });
  const n = fabric.graph.endpoints;
  const from = Array.from({ length: n }, (_, e) => e);
  const loads = linkLoads(
    fabric,
    routeFlows(fabric, { from, to: from.map((e) => (e + n / 2) % n) }, { kind: "static" }),
  );
  // An uplink of 400G fits two flows of 200G.
  expect(loads.reduce((most, load) => Math.max(most, load), 0)).toBe(2);
});

test("adaptive routing spreads better than a hash", () => {
  const fabric = llama3Fabric({ hosts: 96 });
  const n = fabric.graph.endpoints;
  const from = Array.from({ length: n }, (_, e) => e);
  const flows = { from, to: from.map((e) => (e + n / 2) % n) };
  const most = (policy: RoutingPolicy) =>
    linkLoads(fabric, routeFlows(fabric, flows, policy)).reduce((m, x) => Math.max(m, x), 0);
  expect(most({ kind: "adaptive" })).toBeLessThan(most({ kind: "ecmp" }));
});

test("the same flows take the same routes, another seed or key other ones", () => {
  const fabric = megascaleFabric({ hosts: 512 });
  const from = Array.from({ length: 64 }, (_, i) => i * 8);
  const to = from.map((e) => 4095 - e);
  const links = (key: number, seed: number) =>
    routeFlows(fabric, { from, to, key: from.map(() => key) }, { kind: "ecmp", seed }).links;
  expect(links(0, 0)).toEqual(links(0, 0));
  expect(links(1, 0)).not.toEqual(links(0, 0));
  expect(links(0, 1)).not.toEqual(links(0, 0));
});

test("routes go round cables that are down, and nowhere else", () => {
  const fabric = fatTreeFabric({ hosts: 16, radix: 8, levels: 2, bandwidth: 1 });
  const before = routeFlows(fabric, { from: [0], to: [15] });
  const worn = withLinkStates(
    fabric,
    [...before.links].slice(1, -1).map((link) => ({ cable: link >> 1, state: "down" as const })),
  );
  const after = routeFlows(worn, { from: [0], to: [15] });
  expect(after.links).toHaveLength(before.links.length);
  for (const link of after.links) expect(worn.state[link >> 1]).toBe(0);
});

test("an endpoint that is cut off has no route, and the message says where it ends", () => {
  const fabric = singleSwitchFabric({ hosts: 3, bandwidth: 1 });
  const cut = withLinkStates(fabric, [{ cable: 2, state: "down" }]);
  expect(() => routeFlows(cut, { from: [0], to: [2] })).toThrow(
    "no way from endpoint 0 to 2: node 0 has no working link towards it",
  );
  expect(routeFlows(cut, { from: [2], to: [2] }).links).toHaveLength(0);
});

test("an explicit graph with a host on two switches leaves by the nearer one", () => {
  const fabric = explicitFabric({
    endpoints: 2,
    layers: [{ name: "switch", switches: 3 }],
    cables: [
      { a: 0, b: 2, bandwidth: 1 },
      { a: 0, b: 3, bandwidth: 1 },
      { a: 3, b: 4, bandwidth: 1 },
      { a: 1, b: 4, bandwidth: 1 },
      { a: 2, b: 3, bandwidth: 1 },
    ],
  });
  expect([...routeFlows(fabric, { from: [0], to: [1] }).links]).toEqual([2, 4, 7]);
});

test("endpoints and columns that do not fit are refused", () => {
  const fabric = singleSwitchFabric({ hosts: 3, bandwidth: 1 });
  expect(() => routeFlows(fabric, { from: [0], to: [3] })).toThrow(
    "endpoint 3 is outside the fabric's 0..2",
  );
  expect(() => routeFlows(fabric, { from: [0, 1], to: [2] })).toThrow("from 2, to 1");
});

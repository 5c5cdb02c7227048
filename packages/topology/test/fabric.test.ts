import fc from "fast-check";
import { expect, test } from "vitest";
import {
  type Fabric,
  bisection,
  capacityOf,
  closFabric,
  cutCapacity,
  dragonflyFabric,
  explicitFabric,
  fatTreeFabric,
  layerOf,
  llama3Fabric,
  megascaleFabric,
  oversubscription,
  seleneFabric,
  singleSwitchFabric,
  slingshotFabric,
  torusFabric,
  withLinkStates,
} from "@trireme/topology";

const range = (start: number, end: number) =>
  Array.from({ length: end - start }, (_, i) => start + i);
const counts = (f: Fabric) => Object.fromEntries(f.layers.map((l) => [l.name, l.switches]));

test("MegaScale: 32 ports down and up, 64 hosts a set of 8 ToRs, four sets a pod", () => {
  // 12,288 GPUs: 1,536 hosts in 24 sets of 8 ToRs; 6 pods of 32 aggregation switches.
  const f = megascaleFabric({ hosts: 1536 });
  expect(f.graph.endpoints).toBe(12_288);
  expect(counts(f)).toMatchObject({ tor: 192, aggregation: 192 });
  expect([0, 1].map((l) => oversubscription(f, l))).toEqual([1, 1]);
  const { first } = f.graph;
  for (const { name, firstSwitch, switches } of f.layers) {
    const ports = range(firstSwitch, firstSwitch + switches).map((s) => first[s + 1]! - first[s]!);
    // A ToR has 64 halves of 400G ports down and 32 ports up; six pods leave core ports free.
    expect(Math.max(...ports)).toBe({ tor: 96, aggregation: 64, core: 48 }[name]);
  }
  const port = capacityOf(f, 0);
  expect(port).toBe(25e9);
  expect(capacityOf(f, 2 * f.graph.endpoints)).toBe(2 * port);
});

test("MegaScale whole: 64 pods are 131,072 GPUs under 1,024 core switches", () => {
  const f = megascaleFabric({ hosts: 16_384 });
  expect(counts(f)).toEqual({ tor: 2048, aggregation: 2048, core: 1024 });
  expect(() => megascaleFabric({ hosts: 16_385 })).toThrow(
    "65 pods; 64-port core switches join 64",
  );
});

test("the eight ports of a MegaScale host are on eight ToRs", () => {
  const { graph } = megascaleFabric({ hosts: 128 });
  for (const host of [0, 63, 64, 127]) {
    const tors = range(host * 8, host * 8 + 8).map((e) => graph.b[e]);
    expect(new Set(tors).size).toBe(8);
  }
  expect(graph.b[0]).toBe(graph.b[63 * 8]);
  expect(graph.b[0]).not.toBe(graph.b[64 * 8]);
});

test("Llama 3: racks of 16 GPUs, pods of 3,072 with full bisection, 1:7 above", () => {
  const f = llama3Fabric({ hosts: 3072 });
  expect(f.graph.endpoints).toBe(24_576);
  expect(counts(f)).toEqual({ tor: 8 * 192, cluster: 8 * 16, aggregation: 16 * 28 });
  expect(oversubscription(f, 0)).toBe(1);
  expect(oversubscription(f, 1)).toBeCloseTo(7, 9);
});

test("a pod of Llama 3 gives the rest of the cluster a seventh of its ports", () => {
  const f = llama3Fabric({ hosts: 768 });
  const pod = range(0, 3072);
  const rest = range(3072, 6144);
  // Exact but for the rounding of sums of 3,072 rates.
  expect(cutCapacity(f, pod, rest) / ((3072 * 50e9) / 7)).toBeCloseTo(1, 9);
  expect(cutCapacity(f, range(0, 1536), range(1536, 3072))).toBeCloseTo(1536 * 50e9, -3);
});

test("Selene's bisection for 3,072 GPUs is 38.4 TB/s, above the traffic that the paper measured", () => {
  const measured = bisection(seleneFabric({ hosts: 384 }));
  expect(measured).toBeCloseTo(38.4e12, -3);
  // Narayanan et al. 2021, section 5.9: 892 GB/s point to point, 12.9 TB/s of all-reduce.
  expect(measured).toBeGreaterThan(12.9e12 + 892e9);
});

test("Frontier's Slingshot: groups of 32 switches, 512 ports, all groups joined", () => {
  const f = slingshotFabric({ hosts: 9408 });
  expect(f.shape).toMatchObject({ groups: 74, routers: 32, ports: 16 });
  expect(f.shape).toMatchObject({ bundle: Math.floor((32 * 17) / 73) });
});

test("the capacity across a pod's cut is its ports over the stated over-subscription", () => {
  const trees = fc.record({
    radix: fc.constantFrom(4, 6, 8, 12),
    low: fc.constantFrom(1, 2, 3, 5),
    high: fc.constantFrom(1, 2, 3),
    rails: fc.boolean(),
  });
  fc.assert(
    fc.property(trees, ({ radix, low, high, rails }) => {
      fc.pre(radix % (low + 1) === 0 && radix % (high + 1) === 0);
      const leaf = (radix * low) / (low + 1);
      const spine = (radix * high) / (high + 1);
      const pod = leaf * spine;
      const tree = { radix, levels: 3, oversubscription: [low, high], bandwidth: 10 };
      const nics = rails ? spine : 1;
      const f = fatTreeFabric({ ...tree, rails, nics, hosts: (3 * pod) / nics });
      const cut = cutCapacity(f, range(0, pod), range(pod, 3 * pod));
      expect(cut / ((pod * 10) / (low * high))).toBeCloseTo(1, 9);
      expect(oversubscription(f, 0)).toBeCloseTo(low, 9);
      expect(oversubscription(f, 1)).toBeCloseTo(high, 9);
    }),
    { numRuns: 40 },
  );
});

test("cables have two different ends, and no switch more ports than the radix", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 32 }),
      fc.integer({ min: 2, max: 3 }),
      (hosts, levels) => {
        const { graph } = fatTreeFabric({ hosts, radix: 8, levels, bandwidth: 1 });
        for (let c = 0; c < graph.cables; c++) expect(graph.a[c]).not.toBe(graph.b[c]);
        for (let n = 0; n < graph.nodes; n++) {
          const ports = graph.first[n + 1]! - graph.first[n]!;
          expect(ports).toBeGreaterThan(0);
          expect(ports).toBeLessThanOrEqual(n < graph.endpoints ? 1 : 8);
        }
      },
    ),
    { numRuns: 50 },
  );
});

test("a torus has two cables for each chip and dimension, one in a dimension of two", () => {
  expect(torusFabric({ sizes: [4, 4, 4], bandwidth: 1 }).graph.cables).toBe(64 + 3 * 64);
  expect(torusFabric({ sizes: [2, 1, 3], bandwidth: 1 }).graph.cables).toBe(6 + 3 + 6);
  // Two rings of eight meet the other half of a 4 x 8 torus: 2 x 4 cables.
  expect(bisection(torusFabric({ sizes: [4, 8], bandwidth: 1 }))).toBeCloseTo(8, 9);
});

test("a dragonfly deals its global cables evenly", () => {
  const f = dragonflyFabric({ endpoints: 72, ports: 2, routers: 4, globals: 2, bandwidth: 1 });
  expect(f.shape).toMatchObject({ groups: 9, bundle: 1 });
  const { first, nodes, endpoints } = f.graph;
  for (let n = endpoints; n < nodes; n++) expect(first[n + 1]! - first[n]!).toBe(2 + 3 + 2);
});

test("a single switch joins every port at full rate", () => {
  const f = singleSwitchFabric({ hosts: 6, bandwidth: 7 });
  expect(f.graph).toMatchObject({ endpoints: 6, nodes: 7, cables: 6 });
  expect(bisection(f)).toBe(21);
  expect([0, 6].map((n) => layerOf(f, n))).toEqual([0, 1]);
});

test("degraded and flapping cables carry a part, a cable down nothing, and the original stays", () => {
  const f = singleSwitchFabric({ hosts: 4, bandwidth: 8 });
  const worn = withLinkStates(f, [
    { cable: 0, state: "degraded", fraction: 0.5 },
    { cable: 1, state: "flapping", fraction: 0.25 },
    { cable: 2, state: "down" },
  ]);
  expect([0, 1, 2, 3].map((c) => capacityOf(worn, 2 * c))).toEqual([4, 2, 0, 8]);
  expect(capacityOf(f, 0)).toBe(8);
  const mended = withLinkStates(worn, [{ cable: 2, state: "up" }]);
  expect(capacityOf(mended, 4)).toBe(8);
});

test.each([
  [() => closFabric({ name: "x", hosts: 0, nics: 1, rails: false, levels: [] }), "hosts is 0"],
  [
    () => fatTreeFabric({ hosts: 33, radix: 8, levels: 2, bandwidth: 1 }),
    "33 hosts of 1 ports do not fit under the top level spine; at most 32 do",
  ],
  [
    () => fatTreeFabric({ hosts: 4, radix: 8, levels: 2, oversubscription: [2], bandwidth: 1 }),
    "8 ports do not divide 2:1 at level 0; nearest is 5:3",
  ],
  [() => singleSwitchFabric({ hosts: 2, bandwidth: 0 }), "bandwidth 0 B/s"],
  [() => torusFabric({ sizes: [4, 0], bandwidth: 1 }), "size 0"],
  [
    () => dragonflyFabric({ endpoints: 100, ports: 1, routers: 2, globals: 1, bandwidth: 1 }),
    "50 groups, but 2 routers x 1 global cables reach 2 others; at most 6 endpoints fit",
  ],
  [
    () => explicitFabric({ endpoints: 2, layers: [], cables: [{ a: 0, b: 1, bandwidth: 1 }] }),
    "cable 0: joins nodes 0 and 1",
  ],
  [
    () =>
      explicitFabric({
        endpoints: 2,
        layers: [{ name: "s", switches: 1 }],
        cables: [{ a: 0, b: 2, bandwidth: 1 }],
      }),
    "endpoint 1 has no cable",
  ],
  [
    () =>
      withLinkStates(singleSwitchFabric({ hosts: 1, bandwidth: 1 }), [{ cable: 1, state: "up" }]),
    "cable 1 is outside the fabric's 0..0",
  ],
  [
    () =>
      withLinkStates(singleSwitchFabric({ hosts: 1, bandwidth: 1 }), [
        { cable: 0, state: "degraded" },
      ]),
    "needs a fraction above 0 and below 1",
  ],
])("what cannot be built is refused (%#)", (build, message) => {
  expect(build).toThrow(message);
});

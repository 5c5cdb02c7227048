import fc from "fast-check";
import { expect, test } from "vitest";
import { bisection, defineCluster, routeFlows } from "@trireme/topology";
import {
  astraFabric,
  astraNetworkOf,
  parseAstraLogical,
  parseAstraNetwork,
  printAstraLogical,
  printAstraNetwork,
} from "@trireme/topology/formats";
import { cut, edit, vector } from "./vectors.ts";

const network = vector("astra-network.yml");
const logical = vector("astra-logical.json");

test("a network file: one dimension an entry, GB/s and ns", () => {
  expect(parseAstraNetwork(network).dimensions[1]).toEqual({
    topology: "Ring",
    npus: 3,
    bandwidth: 50e9,
    latency: expect.closeTo(936.25e-9, 15),
  });
});

const dimension = fc.record({
  topology: fc.constantFrom("Ring" as const, "FullyConnected" as const, "Switch" as const),
  npus: fc.integer({ min: 1, max: 5 }),
  bandwidth: fc.integer({ min: 1, max: 100_000 }).map((n) => n * 1e7),
  latency: fc.integer({ min: 0, max: 100_000 }).map((n) => n * 1e-10),
});
const networks = fc
  .array(dimension, { minLength: 1, maxLength: 3 })
  .map((dimensions) => ({ dimensions }));

test("what is printed reads back the same", () => {
  fc.assert(
    fc.property(networks, (n) => {
      const again = parseAstraNetwork(printAstraNetwork(n));
      for (const [i, d] of n.dimensions.entries()) {
        const { topology, npus, bandwidth, latency } = again.dimensions[i]!;
        expect({ topology, npus }).toEqual({ topology: d.topology, npus: d.npus });
        expect(bandwidth / d.bandwidth).toBeCloseTo(1, 12);
        // 1e-18 s: what is left of the conversion from nanoseconds.
        expect(Math.abs(latency - d.latency)).toBeLessThan(1e-18);
      }
    }),
  );
  fc.assert(
    fc.property(fc.array(fc.integer({ min: 1, max: 4096 }), { minLength: 1 }), (dims) => {
      expect(parseAstraLogical(printAstraLogical(dims))).toEqual(dims);
    }),
  );
  expect(parseAstraLogical(logical)).toEqual([8, 4]);
});

test("its fabric joins every pair of NPUs", () => {
  fc.assert(
    fc.property(networks, (n) => {
      const fabric = astraFabric(n);
      const npus = n.dimensions.reduce((p, d) => p * d.npus, 1);
      expect(fabric.graph.endpoints).toBe(npus);
      const to = Array.from({ length: npus }, (_, i) => i);
      expect(routeFlows(fabric, { from: to.map(() => 0), to }).flows).toBe(npus);
    }),
    { numRuns: 40 },
  );
});

test("a ring of eight has two cables across its middle, a full mesh of four four", () => {
  const one = (topology: "Ring" | "FullyConnected", npus: number) =>
    bisection(astraFabric({ dimensions: [{ topology, npus, bandwidth: 1, latency: 0 }] }));
  expect(one("Ring", 8)).toBeCloseTo(2, 9);
  expect(one("FullyConnected", 4)).toBeCloseTo(4, 9);
});

test("a cluster's dimensions: its hosts' devices, then the hosts", () => {
  const cluster = defineCluster({ host: "dgx-h100", hosts: 4 });
  expect(printAstraNetwork(astraNetworkOf(cluster))).toBe(
    [
      "topology: [ Switch, Switch ]",
      "npus_count: [ 8, 4 ]",
      "bandwidth: [ 450, 50 ]  # GB/s",
      "latency: [ 1000, 5000 ]  # ns",
      "",
    ].join("\n"),
  );
  const racks = astraNetworkOf(defineCluster({ host: "gb200-nvl72", hosts: 36 }));
  expect(racks.dimensions.map((d) => d.npus)).toEqual([72, 2]);
  const single = astraNetworkOf(defineCluster({ host: "gh200", hosts: 1 }));
  expect(single.dimensions.map((d) => d.npus)).toEqual([1]);
  const mixed = defineCluster({
    pools: [
      { host: "pcie-4x-rtx4090", hosts: 1 },
      { host: "pcie-8x-rtx4090", hosts: 1 },
    ],
  });
  expect(() => astraNetworkOf(mixed)).toThrow("12 devices in groups of 4 and 8");
});

test.each([
  ["nothing", "", "x:1: the file is empty"],
  ["a list", "- Ring\n", "x:1: the network must be a map, not a list"],
  ["cut in a list", cut(network, ", 2]"), "x:4: "],
  ["cut before the bandwidth", cut(network, "# GB/s a"), 'the network has no "bandwidth"'],
  ["cut before the latency", cut(network, "latency"), 'the network has no "latency"'],
  ["an unknown topology", edit(network, "Ring,", "Rng,"), 'x:2: unknown topology "Rng"'],
  [
    "an unknown key",
    edit(network, "npus_count", "npu_count"),
    'x:4: the network has an unknown key "npu_count"; did you mean "npus_count"?',
  ],
  [
    "a dimension short",
    edit(network, "50, 12.5", "50"),
    "x:7: bandwidth has 2 entries, but topology has 3",
  ],
  [
    "a count of none",
    edit(network, "[4, 3", "[0, 3"),
    "x:4: npus_count 0; use an integer from 1 up",
  ],
  ["half an NPU", edit(network, "[4, 3", "[4.5, 3"), "x:4: npus_count 4.5"],
  [
    "a word for a number",
    edit(network, "150.0", "fast"),
    'x:7: bandwidth must be a number, not "fast"',
  ],
  ["no bandwidth", edit(network, "150.0", "0"), "x:7: bandwidth 0 GB/s; it must be above 0"],
  ["time backwards", edit(network, "936.25", "-1"), "x:9: latency -1 ns; it must be 0 or more"],
  ["a key twice", `${network}latency: [ 1, 1, 1 ]\n`, "x:10: "],
])("network YAML: %s gets one error with line and reason", (_, text, message) => {
  expect(() => parseAstraNetwork(text, "x")).toThrow(message);
  expect(() => parseAstraNetwork(text, "x")).toThrow(/^x:\d+: [^\n]+$/);
});

test.each([
  ["nothing", "", "x:1: expected a value"],
  ["cut in the key", cut(logical, "dims"), "x:2: expected a string"],
  ["cut in the list", cut(logical, '"4"'), "x:2: expected a value, found the end of the file"],
  ["cut at the end", cut(logical, "\n}"), 'x:2: expected ",", found the end of the file'],
  ["a list", '["8"]', "x:1: the topology must be a map, not a list"],
  [
    "an unknown key",
    edit(logical, "logical-dims", "logical_dims"),
    'x:2: the topology has an unknown key "logical_dims"; did you mean "logical-dims"?',
  ],
  ["no key", "{}", 'x:1: the topology has no "logical-dims"'],
  ["numbers", edit(logical, '"8"', "8"), "x:2: a dimension must be a string, not 8"],
  ["no number", edit(logical, '"8"', '"x"'), 'x:2: dimension "x" is no integer from 1 up'],
  ["zero", edit(logical, '"8"', '"0"'), 'x:2: dimension "0"'],
  ["no dimensions", '{"logical-dims": []}', "x:1: logical-dims has no dimensions"],
  ["a comment", `// dims\n${logical}`, 'x:1: expected a value, found "/"'],
])("logical topology: %s gets one error with line and reason", (_, text, message) => {
  expect(() => parseAstraLogical(text, "x")).toThrow(message);
  expect(() => parseAstraLogical(text, "x")).toThrow(/^x:\d+: [^\n]+$/);
});

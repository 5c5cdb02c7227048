import { SaxesParser } from "saxes";
import { expect, test } from "vitest";
import {
  clusterPicture,
  clusterSvg,
  defineCluster,
  defineHost,
  defineLink,
  dragonflyFabric,
  fatTreeFabric,
  withLinkStates,
} from "@trireme/topology";

const fabric = fatTreeFabric({
  hosts: 4,
  nics: 8,
  rails: true,
  radix: 8,
  levels: 2,
  bandwidth: 50e9,
});

test("a cluster as text", () => {
  const worn = withLinkStates(fabric, [
    { cable: 40, state: "down" },
    { cable: 41, state: "degraded", fraction: 0.5 },
  ]);
  const cluster = defineCluster({ name: "small", host: "dgx-h100", hosts: 4, fabric: worn });
  expect(clusterPicture(cluster)).toMatchInlineSnapshot(`
    "small: 4 hosts, 32 devices
    ├─ fabric fat-tree-8: 32 ports, 64 cables; 1 degraded, 1 down
    │  ├─ spine: 4 switches; 32 x 50 GB/s to leaf
    │  └─ leaf: 8 switches; 32 x 50 GB/s to hosts
    └─ 4 x dgx-h100
       ├─ 8 x h100: 989.4 TFLOP/s bf16, 80 GiB at 3.350 TB/s
       ├─ between them: 28 pairs of 450 GB/s nvlink
       └─ 8 NICs: 50 GB/s a device
          ├─ NUMA 0: devices 0 1 2 3, NICs 0 1 2 3
          └─ NUMA 1: devices 4 5 6 7, NICs 4 5 6 7
    "
  `);
});

test("pools of different hosts", () => {
  const cluster = defineCluster({
    pools: [
      { host: "frontier", hosts: 2 },
      { host: "gb200-nvl72", hosts: 18 },
      { host: "cpu-8", hosts: 1 },
    ],
  });
  expect(clusterPicture(cluster)).toMatchInlineSnapshot(`
    "2xfrontier+18xgb200-nvl72+1xcpu-8: 21 hosts, 96 devices
    ├─ 2 x frontier
    │  ├─ 8 x mi250x: 191.5 TFLOP/s bf16, 64 GiB at 1.638 TB/s
    │  ├─ between them: 4 pairs of 200 GB/s xgmi, 6 pairs of 100 GB/s xgmi, 18 pairs of 50 GB/s xgmi
    │  └─ 4 NICs: 12.50 GB/s a device
    │     ├─ NUMA 0: devices 4 5, NIC 2
    │     ├─ NUMA 1: devices 2 3, NIC 1
    │     ├─ NUMA 2: devices 6 7, NIC 3
    │     └─ NUMA 3: devices 0 1, NIC 0
    ├─ 18 x gb200-nvl72
    │  ├─ 4 x gb200: 2.500 PFLOP/s bf16, 186 GiB at 8 TB/s
    │  ├─ between them: 6 pairs of 900 GB/s nvlink
    │  ├─ 18 hosts joined by nvlink, 900 GB/s
    │  └─ 4 NICs: 50 GB/s a device
    │     ├─ NUMA 0: devices 0 1, NICs 0 1
    │     └─ NUMA 1: devices 2 3, NICs 2 3
    └─ 1 x cpu-8
       ├─ 8 x cpu-core: 96 GFLOP/s fp32, 4 GiB at 5 GB/s
       ├─ between them: 28 pairs of 2.500 GB/s memory
       └─ 1 NIC: 156.3 MB/s a device
    "
  `);
});

/** Elements of an SVG by name; throws where it is not well-formed. */
function elements(svg: string): Record<string, number> {
  const counts: Record<string, number> = {};
  const parser = new SaxesParser();
  parser.on("error", (error) => {
    throw error;
  });
  parser.on("opentag", ({ name }) => {
    counts[name] = (counts[name] ?? 0) + 1;
  });
  parser.write(svg).close();
  return counts;
}

test("a cluster as SVG: well-formed, a box for every switch, host and device, a line for each joined pair", () => {
  const cluster = defineCluster({ name: `a < "b" & c`, host: "dgx-h100", hosts: 4, fabric });
  const counts = elements(clusterSvg(cluster));
  // 8 leaves with 1 cable from each of 4 hosts; 4 spines with one cable each to 8 leaves.
  expect(fabric.layers.map((l) => l.switches)).toEqual([8, 4]);
  expect(counts).toMatchObject({ rect: 8 + 4 + 4 + 32, line: 4 * 8 + 4 * 8 });
  expect(clusterSvg(cluster)).toBe(clusterSvg(cluster));
});

test("rows longer than wanted say how many follow", () => {
  const cluster = defineCluster({ host: "gh200", hosts: 100 });
  const svg = clusterSvg(cluster, { boxes: 3 });
  expect(svg).toContain("+97");
  expect(elements(svg)).toMatchObject({ rect: 6 });
});

test("a cable that is down is drawn in red, last, and what the colours say stands below", () => {
  const down = withLinkStates(fabric, [{ cable: 0, state: "down" }]);
  const cluster = defineCluster({ host: "dgx-h100", hosts: 4, fabric: down });
  const lines = clusterSvg(cluster).match(/<line [^>]*>/g)!;
  expect(lines.filter((line) => line.includes("#c62f3d"))).toEqual([lines.at(-1)]);
  expect(clusterSvg(cluster)).toContain("━━</tspan> down");
  expect(clusterSvg(defineCluster({ host: "dgx-h100", hosts: 4, fabric }))).not.toContain("━━");
});

test("cables inside a layer are arcs, one for each joined pair that is shown", () => {
  // Two groups of two routers: a cable inside each, and a bundle of two between them.
  const dragonfly = dragonflyFabric({
    endpoints: 8,
    ports: 2,
    routers: 2,
    globals: 1,
    bandwidth: 1e9,
  });
  const host = defineHost({
    name: "one-port",
    accelerator: "rtx4090",
    accelerators: 2,
    nics: 1,
    link: defineLink("pcie", 1e9),
    network: defineLink("network", 1e9),
  });
  const svg = clusterSvg(defineCluster({ host, hosts: 8, fabric: dragonfly }));
  expect(elements(svg)).toMatchObject({ line: 8, path: 4 });
  expect(svg).toContain("4 x 1 GB/s to router");
});

test("every pool is named below its first host, inside the picture", () => {
  const svg = clusterSvg(
    defineCluster({
      pools: [
        { host: "dgx-h100", hosts: 1 },
        { host: "pcie-8x-h100-nvl", hosts: 1 },
      ],
    }),
  );
  const width = Number(/width="(\d+)"/.exec(svg)![1]);
  for (const note of ["1 x dgx-h100: 8 x h100 each", "1 x pcie-8x-h100-nvl: 8 x h100-nvl each"]) {
    const x = Number(new RegExp(`x="(\\d+)"[^>]*>${note}`).exec(svg)![1]);
    // Ten-pixel text is about five wide.
    expect(x + 5 * note.length).toBeLessThan(width);
  }
});

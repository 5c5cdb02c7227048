import { GBps } from "@trireme/core";
import { expect, test } from "vitest";
import {
  type Interior,
  defineHost,
  defineInterior,
  defineLink,
  host,
  hosts,
  linkInside,
  nearestNics,
  nicOf,
  nicsOf,
  numaOf,
  pairLink,
} from "@trireme/topology";

const gigabytes = (name: string, a: number, b: number) =>
  pairLink(host(name), a, b).bandwidth / 1e9;

test("Frontier's pairs: 200 GB/s in a package, 100 and 50 between, 50 at least everywhere", () => {
  // OLCF user guide: 200 GB/s between the dies of a package, 50 to 100 GB/s between packages.
  for (const die of [0, 2, 4, 6]) expect(gigabytes("frontier", die, die + 1)).toBe(200);
  for (const [a, b] of [
    [0, 6],
    [2, 4],
  ] as const) {
    expect(gigabytes("frontier", a, b)).toBe(100);
  }
  for (const [a, b] of [
    [0, 2],
    [1, 3],
    [1, 5],
    [3, 7],
    [4, 6],
    [5, 7],
  ] as const) {
    expect(gigabytes("frontier", a, b)).toBe(50);
  }
  for (let a = 0; a < 8; a++) {
    for (let b = 0; b < 8; b++) {
      if (a === b) continue;
      expect(gigabytes("frontier", a, b)).toBe(gigabytes("frontier", b, a));
      expect(pairLink(host("frontier"), a, b).kind).toBe("xgmi");
    }
  }
  expect(host("frontier").link.bandwidth).toBe(GBps(50));
});

test("Frontier's NUMA domains and NICs are those of the user guide", () => {
  const { interior } = host("frontier");
  const dies = [0, 1, 2, 3, 4, 5, 6, 7];
  expect(dies.map((d) => numaOf(interior!, d))).toEqual([3, 3, 1, 1, 0, 0, 2, 2]);
  expect(dies.map((d) => nicOf(host("frontier"), d))).toEqual([0, 0, 1, 1, 2, 2, 3, 3]);
  // Four 25 GB/s ports for eight dies.
  expect(host("frontier").network.bandwidth).toBe(GBps(12.5));
});

test("a DGX-1's pairs have one NVLink, two, or PCIe and the sockets between", () => {
  expect(gigabytes("dgx-v100-32", 0, 1)).toBe(25);
  expect(gigabytes("dgx-v100-32", 0, 3)).toBe(50);
  expect(pairLink(host("dgx-v100-32"), 0, 5)).toMatchObject({ kind: "pcie", bandwidth: 15.75e9 });
  // Every GPU has six links.
  for (let a = 0; a < 8; a++) {
    let sum = 0;
    for (let b = 0; b < 8; b++) {
      if (a !== b && pairLink(host("dgx-v100-32"), a, b).kind === "nvlink") {
        sum += gigabytes("dgx-v100-32", a, b);
      }
    }
    expect(sum).toBe(150);
  }
});

test("on an NVSwitch every pair has the accelerator's full rate", () => {
  for (const name of ["dgx-a100-80", "dgx-h100", "dgx-h200", "dgx-b200", "hgx-h800"]) {
    const h = host(name);
    for (let b = 1; b < 8; b++) {
      expect(pairLink(h, 0, b)).toMatchObject({ kind: "nvlink", bandwidth: h.accelerator.scaleUp });
    }
    expect([0, 7].map((d) => nicOf(h, d))).toEqual([0, 7]);
  }
});

test("a Max 1550 node: the tile beside, the tiles of the same side, and the others through them", () => {
  expect(gigabytes("max1550-4", 0, 1)).toBe(196);
  expect(gigabytes("max1550-4", 0, 2)).toBe(53);
  expect(pairLink(host("max1550-4"), 0, 3)).toMatchObject({ kind: "xelink", bandwidth: 53e9 });
});

test("cards without a bridge talk over PCIe, across sockets over the processors' link", () => {
  const h = host("pcie-4x-rtx4090");
  expect(pairLink(h, 0, 1)).toMatchObject({ kind: "pcie", bandwidth: 31.5e9 });
  expect(pairLink(h, 0, 3).latency).toBeGreaterThan(pairLink(h, 0, 1).latency);
  expect([0, 1, 2, 3].map((d) => numaOf(h.interior!, d))).toEqual([0, 0, 1, 1]);
});

test("Gaudis: three Ethernet ports between any two, three out of the host, together the 24 of each", () => {
  for (const [name, port] of [
    ["gaudi2-8", 100],
    ["gaudi3-8", 200],
  ] as const) {
    const h = host(name);
    expect(pairLink(h, 0, 7)).toMatchObject({ kind: "roce", bandwidth: ((3 * port) / 8) * 1e9 });
    expect(h.network.bandwidth).toBe(((3 * port) / 8) * 1e9);
    expect(7 * h.link.bandwidth + h.network.bandwidth).toBe(((24 * port) / 8) * 1e9);
    expect(h.accelerator.scaleUp).toBe(7 * h.link.bandwidth);
    expect([0, 1, 2, 3, 4, 5, 6, 7].map((d) => nicOf(h, d))).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
  }
});

test("eight MI3xx are wired pair by pair, with all seven links of each", () => {
  for (const name of ["mi300x-8", "mi325x-8", "mi350x-8", "mi355x-8"]) {
    const h = host(name);
    expect(7 * h.link.bandwidth).toBe(h.accelerator.scaleUp);
  }
});

test("H200 NVL cards: four on a bridge, others over PCIe", () => {
  expect(gigabytes("pcie-8x-h200-nvl", 0, 3)).toBe(150);
  expect(pairLink(host("pcie-8x-h200-nvl"), 3, 4)).toMatchObject({ kind: "pcie" });
});

test("every host of the catalogue has a way between all its pairs, a NIC and a source", () => {
  for (const h of hosts) {
    expect(h.source!.length).toBeGreaterThan(10);
    for (let a = 0; a < h.accelerators; a++) {
      expect(nicOf(h, a)).toBeLessThan(nicsOf(h));
      for (let b = 0; b < h.accelerators; b++) {
        if (a === b) continue;
        expect(pairLink(h, a, b).bandwidth).toBeGreaterThanOrEqual(h.link.bandwidth);
      }
    }
  }
});

const lane = defineLink("pcie", 1e9, 0);
const small: Interior = {
  parts: [
    { kind: "accelerator", name: "gpu0" },
    { kind: "accelerator", name: "gpu1" },
    { kind: "nic", name: "nic0" },
    { kind: "nic", name: "nic1" },
    { kind: "pcie", name: "switch0" },
  ],
  wires: [0, 1, 2, 3].map((a) => ({ a, b: 4, link: lane })),
};

test("a host of your own: devices that share NICs take them in turn", () => {
  const h = defineHost({
    name: "mine",
    accelerator: "rtx4090",
    interior: small,
    network: defineLink("network", 1e9),
  });
  expect(h).toMatchObject({ accelerators: 2, concurrency: 2, link: { kind: "pcie" } });
  expect(nearestNics(small, 0)).toEqual([0, 1]);
  expect([0, 1].map((d) => nicOf(h, d))).toEqual([0, 1]);
  expect(linkInside(small, 0, 5)).toBeUndefined();
});

test("a host of your own without an interior: one link for all pairs, NICs in equal shares", () => {
  const h = defineHost({
    name: "plain",
    accelerator: "l20",
    accelerators: 4,
    link: lane,
    nics: 2,
    network: defineLink("network", 1e9),
  });
  expect(pairLink(h, 0, 3)).toBe(lane);
  expect([0, 1, 2, 3].map((d) => nicOf(h, d))).toEqual([0, 0, 1, 1]);
});

test("hosts whose parts do not fit are refused", () => {
  const network = defineLink("network", 1e9);
  const base = { name: "mine", accelerator: "a100-80", network };
  expect(() => defineHost(base)).toThrow("mine has 0 accelerators; use 1 or more");
  expect(() => defineHost({ ...base, accelerators: 2, nics: 0 })).toThrow("mine has 0 NICs");
  expect(() => defineHost({ ...base, accelerators: 2 })).toThrow("neither an interior nor a link");
  expect(() => defineHost({ ...base, accelerators: 3, interior: small })).toThrow(
    "3 accelerators stated, but 2 in the interior",
  );
  expect(() => defineInterior({ ...small, wires: small.wires.slice(1) })).toThrow(
    'nothing joins "gpu1" to "gpu0"',
  );
  expect(() => defineInterior({ ...small, wires: [{ a: 0, b: 9, link: lane }] })).toThrow(
    "a wire joins parts 0 and 9",
  );
  const twice = { ...small, parts: small.parts.map(({ kind }) => ({ kind, name: "x" })) };
  expect(() => defineInterior(twice)).toThrow('two parts of the host are called "x"');
  expect(() => defineLink("pcie", 0)).toThrow("bandwidth must be above 0");
  expect(() => defineLink("pcie", 1, -1)).toThrow("latency must be 0 or more");
});

import { expect, test } from "vitest";
import {
  defineCluster,
  devicesIn,
  domainKinds,
  domainOf,
  domainsOf,
  hostOf,
  linkBetween,
  llama3Fabric,
  megascaleFabric,
  meshFromOrder,
  nicIndex,
  railOf,
  singleSwitchFabric,
  slingshotFabric,
  spanOf,
} from "@trireme/topology";

const megascale = defineCluster({
  host: "dgx-a100-80",
  hosts: 512,
  fabric: megascaleFabric({ hosts: 512 }),
});

test("a device knows its host, rack, ToR set, pod and feed", () => {
  expect(domainsOf(megascale, 8 * 300 + 5)).toEqual({
    accelerator: 2405,
    host: 300,
    rack: 75,
    "tor-set": 4,
    pod: 1,
    "power-feed": 9,
  });
  expect([nicIndex(megascale, 2405), railOf(megascale, 2405)]).toEqual([2405, 5]);
});

test("every domain is whole: its devices know it, and all domains together are the cluster", () => {
  const cluster = defineCluster({ host: "frontier", hosts: 40, domains: { pod: 16 } });
  for (const kind of domainKinds) {
    const sizes: number[] = [];
    for (let domain = 0; ; domain++) {
      const devices = devicesIn(cluster, kind, domain);
      if (devices.length === 0) break;
      for (const d of devices) expect(domainOf(cluster, d, kind)).toBe(domain);
      sizes.push(devices.length);
    }
    expect(sizes.reduce((sum, n) => sum + n, 0)).toBe(cluster.devices);
  }
});

test("Llama 3: a rack is two hosts, its ToR's set; a pod 384 hosts", () => {
  const cluster = defineCluster({
    host: "dgx-h100",
    hosts: 768,
    fabric: llama3Fabric({ hosts: 768 }),
    domains: { rack: 2 },
  });
  expect(cluster.domains).toMatchObject({ rack: 2, torSet: 2, pod: 384, powerFeed: 16 });
});

test("a dragonfly's pods are its groups; a scale-up rack is a rack", () => {
  const frontier = defineCluster({
    host: "frontier",
    hosts: 256,
    fabric: slingshotFabric({ hosts: 256 }),
  });
  expect(frontier.domains).toMatchObject({ torSet: 4, pod: 128 });
  expect(defineCluster({ host: "gb200-nvl72", hosts: 36 }).domains).toMatchObject({ rack: 18 });
});

test("domains can be given host by host", () => {
  const cluster = defineCluster({ host: "gh200", hosts: 3, domains: { rack: [7, 9, 7] } });
  expect(devicesIn(cluster, "rack", 7)).toEqual([0, 2]);
  expect(domainOf(cluster, 1, "power-feed")).toBe(9);
});

test("a fabric must have a port for every NIC, and a list a place for every host", () => {
  expect(() =>
    defineCluster({
      host: "dgx-h100",
      hosts: 2,
      fabric: singleSwitchFabric({ hosts: 2, bandwidth: 1 }),
    }),
  ).toThrow("the fabric switch has 2 endpoints, but the hosts have 16 NICs");
  expect(() => defineCluster({ host: "gh200", hosts: 3, domains: { pod: [0] } })).toThrow(
    "pod is given for 1 hosts, but the cluster has 3",
  );
  expect(() => defineCluster({ host: "gh200", hosts: 3, domains: { rack: 0 } })).toThrow(
    "rack of 0 hosts",
  );
});

test("TP of 8 stays in a host, DP on its rail, PP of 8 hosts in a ToR set", () => {
  const mesh = meshFromOrder("tp-pp-dp", { tp: 8, pp: 8, dp: 64 });
  expect(spanOf(megascale, mesh, "tp")).toMatchObject({ smallest: "host", rail: false });
  expect(spanOf(megascale, mesh, "pp")).toMatchObject({ smallest: "tor-set", rail: true });
  expect(spanOf(megascale, mesh, "dp")).toMatchObject({ smallest: "cluster", rail: true });
  expect(spanOf(megascale, mesh, ["tp", "pp"]).inside["tor-set"]).toBe(true);
  expect(spanOf(megascale, mesh, [])).toMatchObject({ smallest: "accelerator", rail: true });
});

test("spans follow the device of each rank", () => {
  const cluster = defineCluster({ host: "dgx-a100-80", hosts: 2 });
  const mesh = meshFromOrder("tp-dp", { tp: 2, dp: 8 });
  const interleaved = Array.from({ length: 16 }, (_, r) => (r % 2) * 8 + Math.floor(r / 2));
  expect(spanOf(cluster, mesh, "tp").smallest).toBe("host");
  expect(spanOf(cluster, mesh, "tp", { devices: interleaved })).toMatchObject({
    smallest: "rack",
    rail: true,
  });
  expect(() => spanOf(cluster, meshFromOrder("dp", { dp: 17 }), "dp")).toThrow(
    "the mesh has 17 ranks, but there are 16 devices",
  );
});

/** HexiScale (arXiv 2409.01143): its three beds of mixed hosts, here over 10 Gbit/s of TCP. */
const tcp = { kind: "network", bandwidth: 1.25e9, latency: 50e-6 } as const;
const beds = [
  ["8 x 3080 Ti, 8 x 3090, 24 x 4090", 40, { rtx3080ti: 1, rtx3090: 1, rtx4090: 3 }, 0, false],
  ["8 each of four kinds", 32, { rtx3080ti: 1, rtx3090: 1, rtx4090: 1 }, 0, true],
  ["8 x 3090, 40 x 4090 in boxes of 4 and 8, 8 x A100", 56, { rtx3090: 1, rtx4090: 4 }, 2, true],
] as const;

test.each(beds)("HexiScale's bed of %s", (name, devices, boxes, fours, a100) => {
  const pools = [
    ...Object.entries(boxes).map(([card, hosts]) => ({ host: `pcie-8x-${card}`, hosts })),
    ...(fours > 0 ? [{ host: "pcie-4x-rtx4090", hosts: fours }] : []),
    ...(a100 ? [{ host: "dgx-a100-80", hosts: 1 }] : []),
  ].map((pool) => ({ ...pool, network: tcp }));
  const cluster = defineCluster({ name, pools });
  expect(cluster.devices).toBe(devices);
  for (let a = 0; a < devices; a++) {
    const host = hostOf(cluster, a);
    for (let b = 0; b < devices; b++) {
      if (a === b) continue;
      const { kind, bandwidth } = linkBetween(cluster, a, b);
      if (domainOf(cluster, a, "host") !== domainOf(cluster, b, "host")) {
        expect([kind, bandwidth]).toEqual(["network", tcp.bandwidth]);
      } else if (host.name === "dgx-a100-80") expect([kind, bandwidth]).toEqual(["nvlink", 300e9]);
      else expect(["pcie", "nvlink"]).toContain(kind);
    }
  }
});

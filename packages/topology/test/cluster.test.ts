import { expect, test } from "vitest";
import {
  accelerator,
  accelerators,
  corePeak,
  cpuHost,
  defineCluster,
  emulates,
  host,
  hostIndex,
  hostOf,
  hosts,
  linkBetween,
  peakOf,
} from "@trireme/topology";

test("every accelerator has a name of its own, positive figures and a source", () => {
  expect(new Set(accelerators.map((a) => a.name)).size).toBe(accelerators.length);
  for (const a of accelerators) {
    expect(accelerator(a.name)).toBe(a);
    for (const rate of Object.values(a.peak)) expect(rate).toBeGreaterThan(0);
    expect(a.peak.fp32 ?? a.peak.bf16).toBeGreaterThan(0);
    for (const x of [a.memory, a.memoryBandwidth, a.l2, a.multiprocessors, a.idlePower]) {
      expect(x).toBeGreaterThan(0);
    }
    expect(a.scaleUp).toBeGreaterThanOrEqual(0);
    expect(a.idlePower).toBeLessThan(a.tdp);
    expect(a.source.length).toBeGreaterThan(20);
  }
});

test("every host has a name of its own and its parts fit", () => {
  expect(new Set(hosts.map((h) => h.name)).size).toBe(hosts.length);
  for (const h of hosts) {
    expect(host(h.name)).toBe(h);
    expect(h.concurrency).toBeLessThanOrEqual(h.accelerators);
    const ports = h.link.kind === "nvlink" ? h.accelerator.scaleUp : Infinity;
    expect(h.link.bandwidth).toBeLessThanOrEqual(ports);
  }
});

test("unknown names are refused with the nearest known one", () => {
  expect(() => accelerator("a100-8")).toThrow('no accelerator "a100-8"; did you mean "a100-80"?');
  expect(() => accelerator("abacus")).toThrow("known: v100-16, ");
  expect(() => host("dgx-h10")).toThrow('no host "dgx-h10"; did you mean "dgx-h100"?');
});

test("devices run host by host, and links follow the hosts", () => {
  const c = defineCluster({ host: "dgx-a100-80", hosts: 2 });
  expect(c.devices).toBe(16);
  expect(hostIndex(c, 7)).toBe(0);
  expect(hostIndex(c, 8)).toBe(1);
  expect(hostOf(c, 15)).toBe(host("dgx-a100-80"));
  expect(linkBetween(c, 3, 3).kind).toBe("local");
  expect(linkBetween(c, 0, 7)).toMatchObject({ kind: "nvlink", bandwidth: 300e9 });
  expect(linkBetween(c, 0, 8)).toMatchObject({ kind: "network", bandwidth: 25e9 });
});

test("a scale-up fabric joins the trays of a rack, and no more", () => {
  const c = defineCluster({ host: "gb200-nvl72", hosts: 36 });
  expect(linkBetween(c, 0, 71).kind).toBe("nvlink");
  expect(linkBetween(c, 0, 72).kind).toBe("network");
  expect(hostIndex(c, 71)).toBe(17);
});

test("pools of different hosts meet at the slower port", () => {
  const c = defineCluster({
    pools: [
      { host: "dgx-h100", hosts: 3 },
      { host: "dgx-a100-40", hosts: 2 },
    ],
  });
  expect(c).toMatchObject({ devices: 40, hosts: 5, name: "3xdgx-h100+2xdgx-a100-40" });
  expect(hostOf(c, 23).name).toBe("dgx-h100");
  expect(hostOf(c, 24).name).toBe("dgx-a100-40");
  expect(hostIndex(c, 39)).toBe(4);
  expect(linkBetween(c, 23, 24).bandwidth).toBe(25e9);
});

test("a CPU host gives each device its share of memory and bandwidth", () => {
  const h = cpuHost({ cores: 2, devices: 4, peak: 1e11, memory: 8e9, memoryBandwidth: 20e9 });
  expect(h).toMatchObject({ accelerators: 4, concurrency: 2 });
  expect(h.accelerator).toMatchObject({ kind: "cpu", memory: 2e9, memoryBandwidth: 10e9 });
  expect(h.accelerator.peak.fp32).toBe(1e11);
  expect(h.link).toMatchObject({ kind: "memory", bandwidth: 5e9 });
  const one = cpuHost({ cores: 1, peak: 1e11, memory: 8e9, memoryBandwidth: 20e9 });
  expect(one).toMatchObject({ accelerators: 1, concurrency: 1 });
});

test("a core's peak: 3 GHz, 256 bits, two multiply-adds are 96 GFLOP/s, the catalogue's core", () => {
  expect(corePeak({ clock: 3e9, simd: 256, multiplyAdds: 2 })).toBe(96e9);
  expect(accelerator("cpu-core").peak.fp32).toBeCloseTo(96e9, 0);
  expect(() => corePeak({ clock: 3e9, simd: 100, multiplyAdds: 2 })).toThrow("100 bits");
});

test("a core emulates BF16 and FP8 at the rate of fp32; other parts compute in what they have", () => {
  const core = accelerator("cpu-core");
  for (const precision of ["bf16", "fp8"] as const) {
    expect(emulates(core, precision)).toBe(true);
    expect(peakOf(core, precision)).toBe(core.peak.fp32);
  }
  for (const precision of ["fp16", "fp4"] as const) {
    expect(peakOf(core, precision)).toBeUndefined();
    expect(emulates(core, precision)).toBe(false);
  }
  expect(emulates(core, "fp32")).toBe(false);
  const volta = accelerator("v100-32");
  expect(peakOf(volta, "bf16")).toBeUndefined();
  expect(peakOf(volta, "fp16")).toBe(volta.peak.fp16);
});

test("counts and rates that make no sense are refused", () => {
  const fine = { cores: 2, peak: 1e11, memory: 8e9, memoryBandwidth: 20e9 };
  expect(() => cpuHost({ ...fine, cores: 0 })).toThrow("cores is 0");
  expect(() => cpuHost({ ...fine, devices: 1.5 })).toThrow("devices is 1.5");
  expect(() => cpuHost({ ...fine, peak: NaN })).toThrow("peak is NaN");
  expect(() => defineCluster({ host: "dgx-h100", hosts: 0 })).toThrow("0 hosts of dgx-h100");
  expect(() => defineCluster({ pools: [] })).toThrow("at least one pool");
  const c = defineCluster({ host: "dgx-h100", hosts: 1 });
  expect(() => hostOf(c, 8)).toThrow("device 8 is outside the cluster's 0..7");
  expect(() => linkBetween(c, 0, -1)).toThrow("device -1");
});

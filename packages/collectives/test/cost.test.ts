import {
  collectiveTime,
  busBandwidth,
  busFactor,
  closedForm,
  contend,
  createPlan,
  glooAllReduceTime,
  glooCost,
  groupCreation,
  hierarchicalAllReduce,
  ncclTestsTable,
  railAlignedAllToAll,
  ringAllReduce,
  stores,
  testedBytes,
  testedSizes,
} from "@trireme/collectives";
import { GBps, Gbps, MiB } from "@trireme/core";
import { defineCluster, singleSwitchFabric, fatTreeFabric } from "@trireme/topology";
import { expect, test } from "vitest";

test("the ring is 2 (p - 1) (a + n / (p b)), and adding costs on top", () => {
  const options = { ranks: 5, bytes: 1e6, alpha: 1e-5, beta: 1e-9 };
  expect(closedForm("all-reduce", "ring", options)).toBeCloseTo(8 * (1e-5 + 2e5 * 1e-9), 12);
  const added = closedForm("all-reduce", "ring", { ...options, gamma: 1e-9 });
  expect(added).toBeCloseTo(8 * (1e-5 + 2e5 * 1e-9) + 8e5 * 1e-9, 12);
  expect(() => closedForm("all-reduce", "rign", options)).toThrow("known are ring, tree");
});

test("a hierarchical all-reduce sends 1/g of the buffer between hosts", () => {
  const inner = { alpha: 0, beta: 1 };
  const outer = { alpha: 0, beta: 10 };
  const options = { ranks: 32, bytes: 1600, ...inner, perHost: 8, outer };
  // Inside 2 x 7/8 S, outside 2 x 3/4 S / 8 at ten times the price.
  expect(closedForm("all-reduce", "hierarchical", options)).toBeCloseTo(2800 + 3000, 6);
});

test("latency-bound messages go by halving, bandwidth-bound ones by ring", () => {
  const price = (algorithm: string, bytes: number): number =>
    closedForm("all-reduce", algorithm, { ranks: 64, bytes, alpha: 1e-5, beta: 1e-10 });
  expect(price("recursive-doubling", 8)).toBeLessThan(price("ring", 8));
  expect(price("ring", 1e9)).toBeLessThan(price("recursive-doubling", 1e9));
});

test("Gloo's costs are those of its source", () => {
  expect(glooCost("ring", 8, 100)).toEqual({ steps: 7, sent: 700, added: 700 });
  expect(glooCost("ring-chunked", 8, 100)).toEqual({ steps: 32, sent: 200, added: 100 });
  expect(glooCost("halving-doubling", 8, 100).steps).toBe(6);
  expect(glooCost("bcube", 27, 100, 3).steps).toBe(12);
  expect(glooAllReduceTime(8, 1e8)).toBeLessThan(glooAllReduceTime(8, 1e8, { algorithm: "ring" }));
  expect(glooAllReduceTime(1, 1e8)).toBe(0);
});

test("bus factors are those of nccl-tests", () => {
  const factors = (
    ["all-reduce", "all-gather", "all-to-all", "broadcast", "send-receive"] as const
  ).map((operation) => busFactor(operation, 8));
  expect(factors).toEqual([1.75, 0.875, 0.875, 1, 1]);
  expect(busBandwidth("all-reduce", 1e9, 1e-2, 8)).toBeCloseTo(175e9, 0);
  expect(testedBytes("all-to-all", 1000, 8)).toBe(896);
  expect(testedSizes({ from: 8, to: 128, factor: 2 })).toEqual([8, 16, 32, 64, 128]);
  expect(testedSizes({ from: 0, to: 3, step: 2 })).toEqual([0, 2]);
  expect(() => testedSizes({ from: 0, to: 8, factor: 2 })).toThrow("never end");
});

test("the table looks like that of nccl-tests", () => {
  const rows = [
    { bytes: 0, time: 5e-6 },
    { bytes: MiB(32), time: 424e-6, inPlace: 423.5e-6 },
  ];
  expect(ncclTestsTable({ operation: "all-reduce", ranks: 8, rows })).toMatchInlineSnapshot(`
    "#                                                             out-of-place                        in-place
    #       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
    #        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
               0             0     float     sum      -1     5.00    0.00    0.00      0      N/A     N/A     N/A    N/A
        33554432       8388608     float     sum      -1    424.0   79.14  138.49      0    423.5   79.23  138.65      0
    # Avg bus bandwidth    : 92.382"
  `);
});

test("group creation takes MegaScale's 1047 s, 361 s and less than 5 s", () => {
  const axes = [8, 8, 32];
  const tcp = groupCreation({ axes, store: stores["tcp-store"], barriers: "per-group" });
  expect(tcp).toMatchObject({ ranks: 2048, groups: 576, barriers: 576 });
  expect(tcp.time).toBeCloseTo(1047, 6);
  const { redis } = stores;
  expect(groupCreation({ axes, store: redis, barriers: "per-group" }).time).toBeCloseTo(361, 6);
  expect(groupCreation({ axes, store: redis, barriers: "per-kind" }).time).toBeLessThan(5);
  // Over 10,000 GPUs in under 30 s; O(n) is linear, O(n^2) quadratic.
  const large = { axes: [8, 8, 192], store: redis } as const;
  expect(groupCreation({ ...large, barriers: "per-kind" }).time).toBeLessThan(30);
  const ratio = groupCreation({ ...large, barriers: "per-group" }).time / 361;
  expect(ratio).toBeGreaterThan(30);
});

const hosts = (count: number, fabric?: Parameters<typeof defineCluster>[0]["fabric"]) =>
  defineCluster({ host: "dgx-h100", hosts: count, ...(fabric && { fabric }) });

test("a ring alone takes the time of its slowest link", () => {
  const cluster = hosts(4);
  const bytes = MiB(512);
  const ring = { plan: ringAllReduce(4), devices: [0, 8, 16, 24], bytes };
  const { times } = contend({ cluster, collectives: [ring] });
  // Plus 6 steps of the network's latency.
  expect(times[0]).toBeCloseTo((1.5 * bytes) / Gbps(400) + 6 * 5e-6, 8);
});

test("collectives that share links slow each other down, those that do not, do not", () => {
  const cluster = hosts(4);
  const bytes = MiB(512);
  const ring = (devices: number[]) => ({ plan: ringAllReduce(4), devices, bytes });
  const alone = contend({ cluster, collectives: [ring([0, 8, 16, 24])] }).times[0]!;
  const same = contend({ cluster, collectives: [ring([0, 8, 16, 24]), ring([0, 8, 16, 24])] });
  expect(same.times[0]).toBeCloseTo(2 * alone, 3);
  const apart = contend({ cluster, collectives: [ring([0, 8, 16, 24]), ring([1, 9, 17, 25])] });
  expect(apart.times[0]).toBeCloseTo(alone, 9);
  const later = contend({
    cluster,
    collectives: [ring([0, 8, 16, 24]), { ...ring([0, 8, 16, 24]), start: alone / 2 }],
  });
  expect(later.times[0]).toBeGreaterThan(1.4 * alone);
  expect(later.times[1]).toBeCloseTo(later.times[0]!, 3);
});

/** Eight hosts of eight GPUs, a leaf switch for each rail, a third of its bandwidth above. */
const railed = () =>
  hosts(
    8,
    fatTreeFabric({
      hosts: 8,
      nics: 8,
      rails: true,
      radix: 16,
      levels: 2,
      oversubscription: [3],
      bandwidth: Gbps(400),
    }),
  );

test("rings that leave a host on the rail they enter the next one by are faster", () => {
  const places = [0, 1, 2, 3, 4, 5, 6, 7];
  const devices = Array.from({ length: 64 }, (_, i) => i);
  /** Eight rings; ring k goes through each host from its first place to its last. */
  const rings = (through: (host: number, k: number) => number[]): number[][] =>
    places.map((k) => places.flatMap((host) => through(host, k).map((place) => 8 * host + place)));
  const snake = (k: number): number[] => [0, 2, 3, 4, 5, 6, 7, 1].map((i) => (k + i) % 8);
  const aligned = rings((host, k) => (host % 2 === 0 ? snake(k) : snake(k).toReversed()));
  const crossing = rings((_, k) => snake(k));
  const time = (orders: number[][]): number =>
    contend({
      cluster: railed(),
      collectives: [{ plan: ringAllReduce(64, { orders }), devices, bytes: MiB(256) }],
    }).times[0]!;
  expect(time(aligned)).toBeLessThan(0.9 * time(crossing));
});

test("a rail-aligned all-to-all stays under the leaves of an over-subscribed fabric", () => {
  const cluster = railed();
  const devices = Array.from({ length: 64 }, (_, i) => i);
  const time = (plan: ReturnType<typeof createPlan>): number =>
    contend({ cluster, collectives: [{ plan, devices, bytes: MiB(64) }] }).times[0]!;
  const aligned = time(railAlignedAllToAll({ hosts: 8, perHost: 8 }));
  const pairwise = time(createPlan({ operation: "all-to-all", algorithm: "pairwise", ranks: 64 }));
  expect(aligned).toBeLessThan(pairwise);
});

test("two levels beat one ring where the network is slow", () => {
  const fabric = singleSwitchFabric({ hosts: 4, nics: 8, bandwidth: GBps(12.5) });
  const cluster = hosts(4, fabric);
  const devices = Array.from({ length: 32 }, (_, i) => i);
  const time = (plan: ReturnType<typeof createPlan>): number =>
    contend({ cluster, collectives: [{ plan, devices, bytes: MiB(256) }] }).times[0]!;
  expect(time(hierarchicalAllReduce({ hosts: 4, perHost: 8 }))).toBeLessThan(
    time(ringAllReduce(32)),
  );
});

test("plans that do not fit or do not hold are not priced", () => {
  const cluster = hosts(1);
  const bad = (algorithm: string, devices: number[]) => () =>
    contend({
      cluster,
      collectives: [
        { plan: createPlan({ operation: "all-reduce", algorithm, ranks: 4 }), devices, bytes: 1 },
      ],
    });
  expect(bad("ring", [0, 1])).toThrow("plan of 4 ranks and 0 switches on 2 devices");
  expect(bad("nvls", [0, 1, 2, 3])).toThrow("and 1 switches");
  expect(bad("ring", [0, 1, 2, 8])).toThrow("8");
});

const bus = (operation: "all-reduce" | "all-to-all", host: string, ranks: number): number => {
  const cluster = defineCluster({ host, hosts: 64 });
  const bytes = 64e9;
  const devices = Array.from({ length: ranks }, (_, i) => i);
  const seconds = collectiveTime({ operation, bytes, cluster, ranks: devices });
  const passes = operation === "all-reduce" ? 2 : 1;
  return (passes * ((ranks - 1) / ranks) * bytes) / seconds / 1e9;
};

test("Gaudis use the wires to all that take part, and the network's share of each beyond a host", () => {
  // 37.5 GB/s a pair; 64 GB drown the latencies.
  expect(bus("all-reduce", "gaudi2-8", 2)).toBeCloseTo(37.5, 1);
  expect(bus("all-reduce", "gaudi2-8", 4)).toBeCloseTo(3 * 37.5, 1);
  expect(bus("all-reduce", "gaudi2-8", 8)).toBeCloseTo(7 * 37.5, 1);
  expect(bus("all-reduce", "gaudi3-8", 8)).toBeCloseTo(7 * 75, 1);
  // Eight devices have 300 GB/s of network together, more than the wires of each.
  expect(bus("all-reduce", "gaudi2-8", 64)).toBeCloseTo(7 * 37.5, 0);
  expect(bus("all-to-all", "gaudi2-8", 8)).toBeCloseTo(7 * 37.5, 1);
});

test("TPUs use both ways of the axes that they lie on", () => {
  // v6e: 16 x 16 chips, 100 GB/s a link; a line of 16 is one axis, all are two.
  expect(bus("all-reduce", "tpu-v6e", 16)).toBeCloseTo(200, 0);
  expect(bus("all-reduce", "tpu-v6e", 256)).toBeCloseTo(400, -1);
  // v5p: three axes of 100 GB/s links.
  expect(bus("all-reduce", "tpu-v5p", 256)).toBeCloseTo(400, -1);
  // Parts of an all-to-all go a quarter of the way round each axis.
  expect(bus("all-to-all", "tpu-v6e", 256)).toBeCloseTo(400 / 8, 0);
  // A pod's first slice and one chip more: the chip's share of its host's ports is all there is.
  expect(bus("all-reduce", "tpu-v6e", 257)).toBeLessThan(13);
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { createPlan, pairwiseAllToAll, ringAllReduce, treeAllReduce } from "@trireme/collectives";
import {
  type TrafficFlow,
  collectiveFlows,
  dcqcnControl,
  idealControl,
  megascaleControl,
  playPlan,
  retransmitTimer,
  simulateFlows,
  swiftControl,
  unsharedTime,
} from "@trireme/simulator";
import {
  type Cluster,
  defineCluster,
  fatTreeFabric,
  host,
  singleSwitchFabric,
} from "@trireme/topology";

const way = { bandwidth: 1e9, latency: 1e-5 };

test("a ring all-reduce, send by send, takes 2(p - 1)(latency + n / (p bandwidth))", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 2, max: 24 }),
      fc.integer({ min: 1, max: 1e6 }),
      (ranks, bytes) => {
        const plan = ringAllReduce(ranks);
        const { time, events, ends } = playPlan(plan, { bytes, way: () => way });
        const expected = 2 * (ranks - 1) * (way.latency + bytes / (ranks * way.bandwidth));
        // Sums of the same terms: rounding.
        expect(time / expected).toBeCloseTo(1, 9);
        expect(events).toBe(2 * ranks * (ranks - 1));
        expect(ends.every((end) => end === time)).toBe(true);
      },
    ),
  );
});

test("twice the bandwidth is never slower, more ranks in a ring cost more latency", () => {
  for (const plan of [ringAllReduce(6), treeAllReduce(6), pairwiseAllToAll(6)]) {
    const slow = playPlan(plan, { bytes: 1e6, way: () => way }).time;
    const fast = playPlan(plan, { bytes: 1e6, way: () => ({ ...way, bandwidth: 2e9 }) }).time;
    expect(fast).toBeLessThan(slow);
  }
  const small = (ranks: number): number =>
    playPlan(ringAllReduce(ranks), { bytes: 8, way: () => way }).time;
  expect(small(16)).toBeGreaterThan(small(8));
  expect(playPlan(ringAllReduce(1), { bytes: 8, way: () => way }).time).toBe(0);
});

test("a late rank delays a collective by as much, a slow link by what it carries", () => {
  const plan = ringAllReduce(4);
  const even = playPlan(plan, { bytes: 4e6, way: () => way });
  const late = playPlan(plan, { bytes: 4e6, way: () => way, start: [0, 0, 5, 0] });
  expect(late.time).toBeGreaterThan(5);
  expect(late.time).toBeLessThanOrEqual(5 + even.time);
  const slow = playPlan(plan, {
    bytes: 4e6,
    way: (from) => (from === 1 ? { ...way, bandwidth: 5e8 } : way),
  });
  // Six chunks of 1 MB go over the link of half the speed; all others follow its pace.
  expect(slow.time).toBeGreaterThan(6 * 2e-3);
});

test("plans with switches and ways without bandwidth are refused", () => {
  const plan = createPlan({ operation: "all-reduce", algorithm: "nvls", ranks: 4 });
  expect(() => playPlan(plan, { bytes: 8, way: () => way })).toThrow("switches that add");
  const none = { ...way, bandwidth: 0 };
  expect(() => playPlan(ringAllReduce(2), { bytes: 8, way: () => none })).toThrow("0 B/s");
});

/** Hosts of one device on one switch, every port 10 GB/s. */
function star(hosts: number): Cluster {
  const base = host("dgx-h100");
  const { interior: _, ...plain } = base;
  const network = { ...base.network, bandwidth: 10e9, latency: 0 };
  const single = { ...plain, accelerators: 1, concurrency: 1, nics: 1, network };
  const fabric = singleSwitchFabric({ hosts, bandwidth: 10e9 });
  return defineCluster({ host: single, hosts, fabric });
}

test("flows that share nothing take their closed form, those that share a port take turns", () => {
  const cluster = star(4);
  const apart: TrafficFlow[] = [
    { from: 0, to: 1, bytes: 10e9 },
    { from: 2, to: 3, bytes: 5e9 },
  ];
  const alone = simulateFlows({ cluster, flows: apart });
  expect(Math.max(...alone.ends)).toBeCloseTo(unsharedTime(cluster, apart), 9);
  const shared: TrafficFlow[] = [
    { from: 0, to: 3, bytes: 10e9, group: 0 },
    { from: 1, to: 3, bytes: 5e9, group: 1 },
  ];
  const { groups } = simulateFlows({ cluster, flows: shared });
  // Half the port each until the shorter is over, then all of it: 1 s and 1.5 s.
  expect(groups.get(1)).toBeCloseTo(1, 9);
  expect(groups.get(0)).toBeCloseTo(1.5, 9);
});

const anyControl = fc.constantFrom(idealControl, dcqcnControl, swiftControl, megascaleControl);
const anyFraction = fc.double({ min: 0.1, max: 1, noNaN: true });
const anyFlow = {
  bytes: fc.integer({ min: 0, max: 1e9 }),
  start: fc.double({ min: 0, max: 0.3, noNaN: true }),
};

test("bytes are conserved on every link and fit through it, whatever changes", () => {
  const cluster = star(6);
  const device = fc.integer({ min: 0, max: 5 });
  fc.assert(
    fc.property(
      fc.array(fc.record({ from: device, to: device, ...anyFlow }), {
        minLength: 1,
        maxLength: 12,
      }),
      anyFraction,
      anyControl,
      (flows, fraction, control) => {
        const changes = [{ at: 0.05, cable: 2, fraction }];
        const worn = simulateFlows({ cluster, flows, control, changes });
        // Every byte leaves by the port of one host and comes in by that of another.
        const between = flows.filter((f) => f.from !== f.to);
        for (let at = 0; at < 6; at++) {
          const sent = between.filter((f) => f.from === at).reduce((sum, f) => sum + f.bytes, 0);
          const got = between.filter((f) => f.to === at).reduce((sum, f) => sum + f.bytes, 0);
          const ways = [...worn.linkBytes.subarray(2 * at, 2 * at + 2)].sort((a, b) => a - b);
          const expected = [sent, got].sort((a, b) => a - b);
          for (const [k, bytes] of ways.entries()) {
            expect(Math.abs(bytes - expected[k]!)).toBeLessThanOrEqual(
              1e-9 * Math.max(1, expected[k]!),
            );
          }
        }
        // No port passes more than its bandwidth, of which one cable has a part from 0.05 s on.
        const starts = between.map((f) => f.start);
        const ends = [...worn.ends].filter((_, i) => flows[i]!.from !== flows[i]!.to);
        const [first, last] = [Math.min(...starts), Math.max(...ends)];
        const lost = (1 - fraction) * Math.max(0, last - Math.max(first, 0.05));
        for (const [link, bytes] of worn.linkBytes.subarray(0, 12).entries()) {
          const open = last - first - (link >> 1 === 2 ? lost : 0);
          if (bytes > 0) expect(bytes / 10e9).toBeLessThanOrEqual(open + 1e-9);
        }
      },
    ),
    { numRuns: 60 },
  );
});

// Only where all flows share it: elsewhere a worn cable can hasten the last flow, as max-min fair shares
// give others what the flows through it leave.
test("a worn cable never hastens flows that all go through it", () => {
  const cluster = star(6);
  const source = fc.constantFrom(0, 1, 3, 4, 5);
  fc.assert(
    fc.property(
      fc.array(fc.record({ from: source, to: fc.constant(2), ...anyFlow }), {
        minLength: 1,
        maxLength: 12,
      }),
      anyFraction,
      (flows, fraction) => {
        const changes = [{ at: 0.05, cable: 2, fraction }];
        const worn = simulateFlows({ cluster, flows, changes });
        const whole = simulateFlows({ cluster, flows });
        expect(Math.max(...worn.ends)).toBeGreaterThanOrEqual(Math.max(...whole.ends) - 1e-9);
      },
    ),
    { numRuns: 60 },
  );
});

test("a flap stops a flow until the timer's next round; adaptive retransmission until soon after", () => {
  const cluster = star(2);
  const flows = [{ from: 0, to: 1, bytes: 10e9 }];
  const flap = [
    { at: 0.5, cable: 0, fraction: 0 },
    { at: 0.9, cable: 0, fraction: 1 },
  ];
  const timer = retransmitTimer(18);
  expect(timer).toBeCloseTo(1.0737, 3);
  const plain = { timeout: 18, retries: 7 };
  const waits = simulateFlows({ cluster, flows, changes: flap, retransmission: plain });
  expect(waits.ends[0]).toBeCloseTo(0.5 + timer + 0.5, 6);
  const adaptive = { ...plain, adaptiveFrom: 1e-3 };
  const soon = simulateFlows({ cluster, flows, changes: flap, retransmission: adaptive });
  expect(soon.ends[0]).toBeGreaterThan(1.4);
  expect(soon.ends[0]).toBeLessThan(waits.ends[0]!);
  // A cable that stays down uses the retries up, one timer each, and one for the last.
  const dead = simulateFlows({
    cluster,
    flows,
    changes: flap.slice(0, 1),
    retransmission: plain,
  });
  expect(dead.failures).toHaveLength(1);
  expect(dead.failures[0]!.at).toBeCloseTo(0.5 + 8 * timer, 6);
  expect(dead.ends[0]).toBe(Infinity);
});

test("controls that converge are slower where traffic changes, and order as they react", () => {
  const cluster = star(9);
  // A long flow shares its port with eight short ones, one after the other.
  const flows = Array.from({ length: 9 }, (_, i) => ({
    from: i === 0 ? 0 : i,
    to: i === 0 ? 8 : 8,
    bytes: i === 0 ? 5e9 : 1e7,
    start: i * 0.02,
  })).filter((f) => f.from !== f.to);
  const [ideal, megascale, dcqcn] = [idealControl, megascaleControl, dcqcnControl].map(
    (control) => simulateFlows({ cluster, flows, control }).ends[0]!,
  );
  expect(megascale).toBeGreaterThan(ideal!);
  expect(dcqcn).toBeGreaterThan(megascale!);
  expect(() => simulateFlows({ cluster, flows, control: { ...dcqcnControl, start: 0 } })).toThrow(
    "dcqcn: rise",
  );
});

test("ECMP's collisions slow collectives that a static routing keeps apart", () => {
  const base = star(16).pools[0]!.host;
  const fabric = fatTreeFabric({ hosts: 16, radix: 4, levels: 3, bandwidth: 10e9 });
  const cluster = defineCluster({ host: base, hosts: 16, fabric });
  // Two rings, interleaved over all pods, so that every hop crosses the core.
  const rings = [0, 1].map((group) => {
    const devices = Array.from(
      { length: 8 },
      (_, i) => (i % 4) * 4 + 2 * Math.floor(i / 4) + group,
    );
    return collectiveFlows(ringAllReduce(8), { devices, bytes: 8e9, group });
  });
  const flows = rings.flat();
  const apart = simulateFlows({ cluster, flows, policy: { kind: "static" } });
  const times = [0, 1, 2, 3].map((seed) => {
    const { groups } = simulateFlows({ cluster, flows, policy: { kind: "ecmp", seed } });
    return Math.max(...groups.values());
  });
  const free = unsharedTime(cluster, flows);
  for (const time of apart.groups.values()) expect(time).toBeGreaterThanOrEqual(free - 1e-9);
  expect(Math.max(...times)).toBeGreaterThan(1.5 * free);
});

test("changes of cables and flows that are none are refused", () => {
  const cluster = star(2);
  const flows = [{ from: 0, to: 1, bytes: 1 }];
  expect(() =>
    simulateFlows({ cluster, flows, changes: [{ at: 0, cable: 99, fraction: 0 }] }),
  ).toThrow("cable 99");
  expect(() => simulateFlows({ cluster, flows: [{ from: 0, to: 1, bytes: -1 }] })).toThrow(
    "flow 0 of -1 bytes",
  );
  expect(() => retransmitTimer(0)).toThrow("timeout exponent 0");
});

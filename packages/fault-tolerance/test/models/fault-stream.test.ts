import { createRng, days, hours, minutes } from "@trireme/core";
import {
  type Fault,
  type FaultSource,
  FaultStream,
  corruptionSource,
  cumulativeHazard,
  drawFailure,
  drawLemons,
  failureRates,
  faultsUntil,
  flapSource,
  llama3Causes,
  outageSource,
  stopSources,
  stragglerSource,
  unitsOf,
} from "@trireme/fault-tolerance";
import { defineCluster } from "@trireme/topology";
import fc from "fast-check";
import { describe, expect, it } from "vitest";

const llama = defineCluster({ host: "dgx-h100", hosts: 2048 });
const small = defineCluster({ host: "dgx-h100", hosts: 50, domains: { torSet: 8, powerFeed: 30 } });
const rate = failureRates["llama3-405b"];

describe("a fault stream", () => {
  it("gives Llama 3's 54 days their 419 faults with the published mix of causes", () => {
    const sources = stopSources(llama, llama3Causes, rate);
    const runs = 40;
    const byCause = new Map<string, number>();
    let total = 0;
    for (let seed = 0; seed < runs; seed++) {
      for (const { effect } of faultsUntil(llama, sources, { seed, until: days(54) })) {
        total++;
        if (effect.kind === "stop") {
          byCause.set(effect.cause.name, (byCause.get(effect.cause.name) ?? 0) + 1);
        }
      }
    }
    // Four standard errors of a Poisson count; so for each cause.
    expect(Math.abs(total - 419 * runs)).toBeLessThan(4 * Math.sqrt(419 * runs));
    for (const { name, count } of llama3Causes) {
      const error = Math.abs((byCause.get(name) ?? 0) - count * runs);
      expect(error).toBeLessThan(4 * Math.sqrt(count * runs));
    }
  });

  it("is the same on every run of a seed, and another on another seed", () => {
    const sources = [...stopSources(small, llama3Causes, 0.1), outageSource("tor-set", days(9))];
    const history = (seed: number): Fault[] =>
      faultsUntil(small, sources, { seed, until: days(90) });
    expect(history(3)).toEqual(history(3));
    expect(history(3)).not.toEqual(history(4));
  });

  it("leaves the faults of a source where they were when another is added", () => {
    const [first, ...more] = stopSources(small, llama3Causes, 0.1);
    const alone = faultsUntil(small, [first!], { seed: 1, until: days(60) });
    const all = faultsUntil(small, [first!, ...more], { seed: 1, until: days(60) });
    expect(all.filter((each) => each.source === first!.name)).toEqual(alone);
    expect(all.length).toBeGreaterThan(alone.length);
  });

  it("goes on in order of time, with each fault in the hosts of its unit", () => {
    const laws = [
      { kind: "exponential", mean: days(40) },
      { kind: "weibull", shape: 0.7, scale: days(30) },
      { kind: "trace", times: [days(1), days(8), days(8), days(33)] },
    ] as const;
    fc.assert(
      fc.property(
        fc.integer(),
        fc.constantFrom(...laws),
        fc.constantFrom("accelerator", "nic", "host", "rack", "tor-set", "pod", "power-feed"),
        (seed, law, component) => {
          const source = outageLike(component, law);
          const units = unitsOf(small, component);
          const stream = new FaultStream(small, [source], { seed });
          let before = 0;
          for (let i = 0; i < 20; i++) {
            const { time, unit, hosts } = stream.take();
            expect(time).toBeGreaterThanOrEqual(before);
            expect(unit).toBeLessThan(units.count);
            expect(hosts).toEqual(units.hosts(unit));
            for (const host of hosts) expect(host).toBeLessThan(small.hosts);
            before = time;
          }
        },
      ),
      { numRuns: 40 },
    );
  });

  it("fails a fleet of wearing-out units as a stream that keeps every unit would", () => {
    const law = { kind: "weibull", shape: 3, scale: days(100) } as const;
    const source = outageLike("host", law);
    const counts = (draw: (seed: number) => number[]): [number, number] => {
      let [early, late] = [0, 0];
      for (let seed = 0; seed < 200; seed++) {
        for (const time of draw(seed)) {
          if (time < days(60)) early++;
          else late++;
        }
      }
      return [early, late];
    };
    const ours = counts((seed) =>
      faultsUntil(small, [source], { seed, until: days(150) }).map((each) => each.time),
    );
    const plain = counts((seed) => {
      const rng = createRng(seed + 1000);
      const times: number[] = [];
      for (let host = 0; host < small.hosts; host++) {
        for (let time = 0; ;) {
          time += drawFailure(law, rng);
          if (time > days(150)) break;
          times.push(time);
        }
      }
      return times;
    });
    // Two Poisson-like counts: four standard errors of their difference.
    for (const i of [0, 1] as const) {
      expect(ours[i]).toBeGreaterThan(1000);
      expect(Math.abs(ours[i] - plain[i])).toBeLessThan(4 * Math.sqrt(ours[i] + plain[i]));
    }
  });

  it("fails every fresh unit once before a law that never renews in time strikes again", () => {
    const stream = new FaultStream(
      small,
      [outageLike("host", { kind: "weibull", shape: 50, scale: days(10) })],
      { seed: 5 },
    );
    const units = Array.from({ length: small.hosts }, () => stream.take().unit);
    expect(new Set(units).size).toBe(small.hosts);
  });

  it("starts units at their age: those that wear out fail as the rest of their life has it", () => {
    const law = { kind: "weibull", shape: 3, scale: days(100) } as const;
    const bathtub = { kind: "bathtub", laws: [law, { kind: "exponential", mean: 1e12 }] } as const;
    const [age, until] = [days(80), days(20)];
    const chance = -Math.expm1(cumulativeHazard(law, age) - cumulativeHazard(law, age + until));
    for (const each of [law, bathtub]) {
      let failed = 0;
      for (let seed = 0; seed < 60; seed++) {
        const source = { ...outageLike("host", each), age };
        const faults = faultsUntil(small, [source], { seed, until });
        failed += new Set(faults.map(({ unit }) => unit)).size;
      }
      const hosts = 60 * small.hosts;
      // Four binomial standard errors.
      const error = 4 * Math.sqrt(hosts * chance * (1 - chance));
      expect(Math.abs(failed - hosts * chance)).toBeLessThan(error);
    }
    const trace = outageLike("host", { kind: "trace", times: [5, 9] });
    const old = (at: number) => (): FaultStream =>
      new FaultStream(small, [{ ...trace, age: at }], { seed: 0 });
    expect(old(6)().next).toBe(3);
    expect(old(9)).toThrow("no unit lives to the age of 9 s");
    expect(old(-1)).toThrow("age of -1 s");
  });

  it("takes a whole ToR set or power feed at once", () => {
    const faults = faultsUntil(
      small,
      [outageSource("tor-set", days(20)), outageSource("power-feed", days(20))],
      { seed: 2, until: days(200) },
    );
    const sizes = new Set(faults.map((each) => `${each.component} ${each.hosts.length}`));
    // 50 hosts: six full ToR sets of 8 and one of 2; a feed of 30 and one of 20.
    expect([...sizes].toSorted()).toEqual([
      "power-feed 20",
      "power-feed 30",
      "tor-set 2",
      "tor-set 8",
    ]);
  });

  it("groups domains that are given host by host", () => {
    const torSet = [7, 7, 3, 3, 3];
    const cluster = defineCluster({ host: "dgx-h100", hosts: 5, domains: { torSet } });
    const units = unitsOf(cluster, "tor-set");
    expect([units.count, units.hosts(0), units.hosts(1)]).toEqual([2, [0, 1], [2, 3, 4]]);
  });

  it("draws flaps, stragglers and corruption within their ranges", () => {
    const sources = [
      flapSource(days(10), 5),
      stragglerSource(days(10), minutes(1)),
      corruptionSource(days(100)),
    ];
    const faults = faultsUntil(small, sources, { seed: 8, until: days(280) });
    const bits = { sign: 0, exponent: 0, "high-mantissa": 0, "low-mantissa": 0 };
    let corrupt = 0;
    for (const { effect } of faults) {
      if (effect.kind === "flap") expect(effect.duration).toBeGreaterThan(0);
      if (effect.kind === "slow") {
        expect(effect.factor).toBeGreaterThanOrEqual(1.05);
        expect(effect.factor).toBeLessThanOrEqual(1.15);
      }
      if (effect.kind === "corrupt") {
        bits[effect.bits]++;
        corrupt++;
      }
    }
    expect(corrupt).toBeGreaterThan(1000);
    // Widths of float32's classes, within four binomial standard errors.
    for (const [kind, width] of [
      ["sign", 1],
      ["exponent", 8],
      ["high-mantissa", 12],
      ["low-mantissa", 11],
    ] as const) {
      const p = width / 32;
      const error = 4 * Math.sqrt((p * (1 - p)) / corrupt);
      expect(Math.abs(bits[kind] / corrupt - p)).toBeLessThan(error);
    }
  });

  it("fails lemons their factor more often, and no host twice in the numbering", () => {
    const lemons = drawLemons(llama, 0.012, 50, 4);
    expect(lemons.hosts.length).toBe(25);
    const sources = stopSources(llama, llama3Causes, rate);
    let [marked, rest] = [0, 0];
    for (let seed = 0; seed < 10; seed++) {
      for (const { hosts } of faultsUntil(llama, sources, { seed, lemons, until: days(54) })) {
        if (hosts.length === 0) continue;
        if (lemons.hosts.includes(hosts[0]!)) marked++;
        else rest++;
      }
    }
    // Faults of hosts are 356 of 419 by count; the others are of the job.
    const perHost = (10 * 356) / 2048;
    const [expectedMarked, expectedRest] = [25 * 50 * perHost, 2023 * perHost];
    expect(Math.abs(marked - expectedMarked)).toBeLessThan(4 * Math.sqrt(expectedMarked));
    expect(Math.abs(rest - expectedRest)).toBeLessThan(4 * Math.sqrt(expectedRest));
  });

  it("numbers healthy units around the lemons: each fails once before any fails twice", () => {
    const lemons = { hosts: [0, 7, 8, 9, 49], factor: 4 };
    for (const component of ["accelerator", "nic", "host"] as const) {
      // A shape of 200 makes all units fail within a few percent of their time.
      const law = { kind: "weibull", shape: 200, scale: days(10) } as const;
      const stream = new FaultStream(small, [outageLike(component, law)], { seed: 6, lemons });
      const [healthy, marked] = [new Set<number>(), new Set<number>()];
      while (stream.next < days(11)) {
        const { unit, hosts } = stream.take();
        if (lemons.hosts.includes(hosts[0]!)) marked.add(unit);
        else {
          expect(healthy.has(unit)).toBe(false);
          healthy.add(unit);
        }
      }
      const each = unitsOf(small, component).count / small.hosts;
      expect([healthy.size, marked.size]).toEqual([45 * each, 5 * each]);
    }
  });

  it("refuses what cannot strike, naming the value", () => {
    const stop = (law: FaultSource["law"]): FaultStream =>
      new FaultStream(small, [outageLike("host", law)], { seed: 0 });
    expect(() => stop({ kind: "exponential", mean: 0 })).toThrow("mean = 0");
    expect(() => stop({ kind: "trace", times: [3, 1] })).toThrow("sort the times");
    expect(() => stopSources(small, llama3Causes, -1)).toThrow("-1 failures per host-day");
    expect(() => drawLemons(small, 2, 5, 0)).toThrow("share 2");
    expect(
      () => new FaultStream(small, [outageSource("pod", 1)], { seed: 0, lemons: bad }),
    ).toThrow("host 50");
    expect(() => new FaultStream(small, [], { seed: 0 }).take()).toThrow("no sources");
    expect(new FaultStream(small, [], { seed: 0 }).next).toBe(Infinity);
    expect(() => faultsUntil(small, [], { seed: 0, until: Infinity })).toThrow("needs an end");
  });

  it("costs as much as its faults: a year of 10^6 hosts in a hundred draws", () => {
    const huge = defineCluster({ host: "dgx-h100", hosts: 1_000_000 });
    const source = outageLike("host", { kind: "weibull", shape: 1.5, scale: days(1e6) });
    const stream = new FaultStream(huge, [source], { seed: 1 });
    const start = process.cpuUsage().user;
    for (let i = 0; i < 100; i++) stream.take();
    // A draw for each host would take some 100 ms; the hundred faults take well under 10.
    expect(process.cpuUsage().user - start).toBeLessThan(30_000);
    expect(stream.next).toBeGreaterThan(hours(1));
  });
});

const bad = { hosts: [50], factor: 2 };

function outageLike(component: FaultSource["component"], law: FaultSource["law"]): FaultSource {
  const causes = [{ name: "any", count: 1, class: "host", part: "host" }] as const;
  return { name: component, component, law, effect: { kind: "stop", causes } };
}

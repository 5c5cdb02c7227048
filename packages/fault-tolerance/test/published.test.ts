import { createRng, days, hours, minutes } from "@trireme/core";
import {
  acmeCauses,
  assignRecovery,
  byteRobustCauses,
  decideQuorum,
  drawCause,
  drawFailure,
  exactEttr,
  expectedEttr,
  failureRates,
  hangCulprits,
  llama3Causes,
  meanTimeToFailure,
  metricAnomaly,
  outliers,
  phi,
  relativeScores,
  standbyPool,
  stragglers,
} from "@trireme/fault-tolerance";
import { describe, expect, it } from "vitest";

const total = (causes: readonly { count: number }[]): number =>
  causes.reduce((sum, each) => sum + each.count, 0);

describe("published figures", () => {
  it("count 419 interruptions of Llama 3 in 18 causes, 55,365 of ByteRobust, 29 reasons of Acme", () => {
    expect([llama3Causes.length, total(llama3Causes)]).toEqual([18, 419]);
    expect(total(byteRobustCauses)).toBe(55_365);
    expect([acmeCauses.length, total(acmeCauses)]).toEqual([29, 281 + 404 + 1890]);
  });

  it("hold 2, 2, 3 and 4 standbys for 128, 256, 512 and 1,024 machines (ByteRobust, table 5)", () => {
    for (const probability of [0.001_17, 0.0012, 0.001_25]) {
      const pools = [128, 256, 512, 1024].map((hosts) => standbyPool({ hosts, probability }));
      expect(pools).toEqual([2, 2, 3, 4]);
    }
    expect(standbyPool({ hosts: 0, probability: 0.5 })).toBe(0);
    expect(standbyPool({ hosts: 7, probability: 1 })).toBe(7);
  });

  // 0.5 %: the published results carry three digits.
  const off = (value: number, expected: number): number => Math.abs(value / expected - 1);
  const rsc1 = failureRates["rsc-1"];
  const base = { failuresPerHostDay: rsc1, restart: minutes(5) };

  it("give RSC's mean times to failure", () => {
    expect(off(meanTimeToFailure(16_384 / 8, rsc1) / hours(1), 1.803)).toBeLessThan(0.005);
    expect(off(meanTimeToFailure(131_072 / 8, rsc1) / hours(1), 0.2253)).toBeLessThan(0.005);
    expect(off(meanTimeToFailure(100_000 / 8, rsc1) / minutes(1), 17.7)).toBeLessThan(0.005);
    expect(
      off(meanTimeToFailure(2048, failureRates["llama3-405b"]) / hours(1), 3.093),
    ).toBeLessThan(0.005);
  });

  it("give RSC's expected ETTR", () => {
    expect(off(expectedEttr({ ...base, hosts: 2000, interval: hours(1) }), 0.684)).toBeLessThan(
      0.005,
    );
    expect(off(expectedEttr({ ...base, hosts: 2000, interval: minutes(5) }), 0.932)).toBeLessThan(
      0.005,
    );
    const queued = { ...base, hosts: 1000, interval: minutes(30), queue: minutes(1) };
    expect(off(expectedEttr(queued), 0.906)).toBeLessThan(0.005);
    expect(off(expectedEttr({ ...base, hosts: 12_500, interval: minutes(7) }), 0.52)).toBeLessThan(
      0.005,
    );
    const rsc2 = { failuresPerHostDay: failureRates["rsc-2"], interval: minutes(2) };
    expect(off(expectedEttr({ ...rsc2, hosts: 12_500, restart: minutes(2) }), 0.939)).toBeLessThan(
      0.005,
    );
  });

  // Each row: value by the formula here (0.5 %: three digits), value in the paper (5 %: its claim).
  const optimum = (hosts: number, failuresPerHostDay: number, write: number): number => {
    const rate = (hosts * failuresPerHostDay) / days(1);
    const interval = Math.sqrt((2 * write) / rate);
    return expectedEttr({ hosts, failuresPerHostDay, restart: minutes(5), interval, write });
  };
  it.each([
    ["12,000 GPUs, writes of 10 s", optimum(1500, rsc1, 10), 0.921, 0.9],
    [
      "12,000 GPUs, 1 failure per 1000 host-days, writes of 5 min",
      optimum(1500, 1e-3, 300),
      0.898,
      0.9,
    ],
    ["16,000 GPUs, hourly", expectedEttr({ ...base, hosts: 2000, interval: hours(1) }), 0.684, 0.7],
    [
      "16,000 GPUs, 5 min",
      expectedEttr({ ...base, hosts: 2000, interval: minutes(5) }),
      0.932,
      0.93,
    ],
    ["100k GPUs, 7 min", expectedEttr({ ...base, hosts: 12_500, interval: minutes(7) }), 0.52, 0.5],
  ])("equal RSC's ETTR: %s", (_, value, formula, paper) => {
    expect(off(value, formula)).toBeLessThan(0.005);
    expect(off(value, paper)).toBeLessThan(0.05);
  });
});

describe("torchft", () => {
  it("assigns recovery as its own tests do", () => {
    expect(assignRecovery([0, 0])).toEqual([
      { healFrom: undefined, sendTo: [1] },
      { healFrom: 0, sendTo: [] },
    ]);
    expect(assignRecovery([0, 0], { groupRank: 1 })[0]).toEqual({ healFrom: 1, sendTo: [] });
    const mixed = assignRecovery([0, 1, 0, 1, 0]);
    expect(mixed.map((each) => each.sendTo)).toEqual([[], [0, 4], [], [2], []]);
    expect(mixed[0]!.healFrom).toBe(1);
    expect(assignRecovery([0, 1, 0, 1, 0], { groupRank: 1 })[1]!.sendTo).toEqual([2]);
    const none = assignRecovery([0, 0], { initSync: false });
    expect(none.every((each) => each.healFrom === undefined)).toBe(true);
  });

  it("refuses a quorum of half of the heartbeating replicas, and takes one of all", () => {
    const one = { replica: "a", step: 1, joined: 0 };
    const heartbeats = new Map([
      ["a", 0],
      ["b", 0],
    ]);
    const options = { now: 0, heartbeats, minReplicas: 1, joinTimeout: 60 };
    expect(decideQuorum({ ...options, participants: [one] })).toEqual({
      ok: false,
      reason: "need at least half of 2 healthy workers",
    });
    const both = decideQuorum({ ...options, participants: [one, { ...one, replica: "b" }] });
    expect(both).toMatchObject({ ok: true, fast: false, quorum: { id: 1 } });
  });
});

describe("detection", () => {
  it("scores ranks of times × (r + 1) as 1, 1/2, 1/3, 1/4 (NVIDIA)", () => {
    const scores = relativeScores(
      [1, 3].map((t) => ({ name: "k", median: [t, 2 * t, 3 * t, 4 * t] })),
    );
    for (const rank of [0, 1, 2, 3]) expect(scores[rank]).toBeCloseTo(1 / (rank + 1), 12);
    expect(stragglers(scores)).toEqual([3, 2, 1]);
    expect([...relativeScores([{ name: "k", median: [9] }])]).toEqual([1]);
  });

  it("sees NaN, a spike of 5, an outlier and a silent rank", () => {
    expect(metricAnomaly([2, 2, 2], Number.NaN)).toBe("not-finite");
    expect(metricAnomaly([2, 2, 2], 10)).toBe("spike");
    expect(metricAnomaly([2, 2, 2], 9.9)).toBe("none");
    expect(outliers([1, 1.1, 0.9, 1, 50])).toEqual([4]);
    expect(hangCulprits(4, [0, 1, 3])).toEqual([2]);
  });

  it("grows more suspicious the longer the silence", () => {
    const at = [1, 2, 3, 5, 100].map((now) => phi([1, 1, 1], 0, now));
    expect(at).toEqual(at.toSorted((a, b) => a - b));
    expect(at[0]).toBeCloseTo(Math.log10(2), 6);
    expect(at[2]).toBeGreaterThan(8);
    expect(Number.isFinite(at[4])).toBe(true);
  });
});

describe("failure laws", () => {
  it("draw the mean of the law, within four standard errors", () => {
    const rng = createRng(1);
    const n = 20_000;
    const mean = (law: Parameters<typeof drawFailure>[0]): number => {
      let sum = 0;
      for (let i = 0; i < n; i++) sum += drawFailure(law, rng);
      return sum / n;
    };
    // Standard error of an exponential mean: 1/sqrt(n) = 0.7 %; of the Weibull of shape 2: 0.37 %.
    expect(Math.abs(mean({ kind: "exponential", mean: 3 }) / 3 - 1)).toBeLessThan(0.03);
    const weibull = mean({ kind: "weibull", shape: 2, scale: 1 });
    expect(Math.abs(weibull / (Math.sqrt(Math.PI) / 2) - 1)).toBeLessThan(0.015);
    const both = { kind: "exponential", mean: 2 } as const;
    expect(Math.abs(mean({ kind: "bathtub", laws: [both, both] }) - 1)).toBeLessThan(0.03);
    expect(mean({ kind: "trace", times: [4] })).toBe(4);
    expect(() => drawFailure({ kind: "exponential", mean: 0 }, rng)).toThrow("must be above 0");
  });

  it("draw causes in proportion to their counts", () => {
    const rng = createRng(2);
    let gpu = 0;
    for (let i = 0; i < 20_000; i++) if (drawCause(llama3Causes, rng).name === "faulty GPU") gpu++;
    // Four binomial standard errors: 4 · sqrt(0.353 · 0.647 / 20000) = 0.0135.
    expect(Math.abs(gpu / 20_000 - 148 / 419)).toBeLessThan(0.0135);
  });
});

describe("closed form against Monte-Carlo", () => {
  const grid = [64, 2048].flatMap((hosts) =>
    [0.002, 0.0065].flatMap((rate) =>
      [minutes(10), hours(1)].flatMap((interval) =>
        [minutes(2), minutes(20)].map((restart) => ({ hosts, rate, interval, restart })),
      ),
    ),
  );
  it.each(grid)("%o agrees within four standard errors", ({ hosts, rate, interval, restart }) => {
    const rng = createRng(hosts + interval + restart);
    const law = { kind: "exponential", mean: days(1) / (hosts * rate) } as const;
    const samples = 4000;
    let [sum, squares] = [0, 0];
    for (let i = 0; i < samples; i++) {
      let time = 0;
      let need = interval;
      for (;;) {
        const failure = drawFailure(law, rng);
        if (failure >= need) break;
        time += failure;
        need = restart + interval; // a restart is itself exposed to failures
      }
      time += need;
      sum += time;
      squares += time * time;
    }
    const mean = sum / samples;
    const error = Math.sqrt((squares / samples - mean * mean) / samples);
    const options = { hosts, failuresPerHostDay: rate, interval, restart };
    // The segment of the closed form pays its restarts after a failure only.
    expect(Math.abs(mean - interval / exactEttr(options))).toBeLessThan(4 * error + 1e-9 * mean);
  });
});

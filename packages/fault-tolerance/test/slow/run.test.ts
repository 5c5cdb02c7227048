import { createRng, days, hours } from "@trireme/core";
import { expectedEttr } from "@trireme/fault-tolerance";
import { type Incident, playRun } from "@trireme/fault-tolerance/simulation";
import { expect, it } from "vitest";

import { base, calm, decisions, hosts, incidents } from "../run-cases.ts";

it("runs with an incident every seven minutes are decided alike, elided and in full", () => {
  for (let seed = 0; seed < 200; seed++) {
    const { options, times, ...rest } = base(seed);
    const input = {
      ...rest,
      options: {
        ...options,
        hosts: Array.from({ length: 12 }, (_, host) => host),
        standbys: [12, 13, 14],
        minimum: 4,
      },
      times: { ...times, step: 5 },
      horizon: hours(3),
      incidents: incidents(seed, 15, 25, hours(3)),
    };
    expect(decisions(input)).toEqual(decisions({ ...input, transport: "full" }));
  }
});

it("a run comes to the expected ETTR of the published formula, within four standard errors", () => {
  // Small losses, where the formula of first order in the rate holds: 8 failures a day.
  const [rate, count] = [8 / days(1), 30];
  const results = hosts(count).map((seed) => {
    const rng = createRng(seed);
    const struck: Incident[] = [];
    for (let time = 0; ;) {
      time -= Math.log1p(-rng.float()) / rate;
      if (time > days(30)) break;
      struck.push({ time, symptom: "software", hosts: [rng.integer(8)], detect: 60 });
    }
    const times = { ...calm.times, checkpoint: { every: 30, write: 0, durable: 0 } };
    const options = { ...calm.options, restarts: 1000 };
    return playRun({ ...calm, options, times, incidents: struck, horizon: days(30) }).ettr;
  });
  const mean = results.reduce((a, b) => a + b, 0) / count;
  const variance = results.reduce((sum, each) => sum + (each - mean) ** 2, 0) / (count - 1);
  // A restart: 60 s until it is noticed, one heartbeat each to halt and to be told, leave, start.
  const restart = 60 + 10 + 10 + 10 + 100;
  const formula = expectedEttr({ hosts: 1, failuresPerHostDay: 8, interval: 300, restart });
  // Heartbeats are 10 s at most, and a step in progress (10 s) is lost with what is not saved;
  // second order in the rate: (8 / 86,400 · 340)² = 0.1 %.
  expect(Math.abs(mean - formula)).toBeLessThan(4 * Math.sqrt(variance / count) + rate * 20 + 1e-3);
});

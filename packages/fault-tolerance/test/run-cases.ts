/** Runs with many incidents close together, for the comparison of elided with full transport. */
import { createRng, days, hours, minutes } from "@trireme/core";
import {
  type Incident,
  type RunDecision,
  type RunInput,
  playRun,
} from "@trireme/fault-tolerance/simulation";

const symptoms = [
  "silence",
  "evidence",
  "software",
  "named",
  "degraded",
  "loss",
  "update",
] as const;

/** Hosts by number. */
export const hosts = (count: number): number[] => Array.from({ length: count }, (_, host) => host);

/** Eight hosts and two standbys over ten hours in which nothing befalls them. */
export const calm: RunInput = {
  options: { hosts: hosts(8), standbys: [8, 9], deadline: 60 },
  times: {
    heartbeat: 10,
    step: 10,
    checkpoint: { every: 30, write: 5, durable: 20 },
    leave: 10,
    start: 100,
    repair: Infinity,
  },
  incidents: [],
  horizon: hours(10),
};

/** Incidents of a 64-host day, many of them close together. */
export function incidents(seed: number, of: number, count: number, horizon: number): Incident[] {
  const rng = createRng(seed);
  const times = Array.from({ length: count }, () => horizon * rng.float());
  // Half of them fall within a minute of another: in the midst of its recovery.
  for (let i = 1; i < count; i += 2) times[i] = times[i - 1]! + 60 * rng.float();
  return times
    .toSorted((a, b) => a - b)
    .map((time): Incident => {
      const symptom = symptoms[rng.integer(symptoms.length)]!;
      const struck = symptom === "named" || rng.float() < 0.2 ? 1 + rng.integer(4) : 1;
      const first = rng.integer(of);
      const none = symptom === "update" || symptom === "loss";
      return {
        time,
        symptom,
        hosts: none ? [] : Array.from({ length: struck }, (_, i) => (first + i) % of),
        detect: 90 * rng.float(),
        urgent: rng.float() < 0.5,
      };
    });
}

export const base = (seed: number): RunInput => ({
  options: {
    hosts: Array.from({ length: 60 }, (_, host) => host),
    standbys: [60, 61, 62, 63],
    deadline: 60,
    minimum: 40,
    unit: 2,
    restarts: 10,
    patience: 30,
    regrow: minutes(20),
    updateWindow: hours(2),
    spike: { back: 10, margin: 5, limit: 100 },
  },
  times: {
    heartbeat: 10,
    step: (members) => (7.3 * 60) / members,
    checkpoint: { every: 10, write: 2.1, durable: 31 },
    leave: 5,
    start: 77,
    repair: hours(1.3),
  },
  incidents: incidents(seed, 64, 40, days(1)),
  horizon: days(1),
});

export function decisions(input: RunInput): {
  log: RunDecision[];
  end: ReturnType<typeof playRun>;
} {
  const log: RunDecision[] = [];
  return { end: playRun({ ...input, on: (decision) => log.push(decision) }), log };
}

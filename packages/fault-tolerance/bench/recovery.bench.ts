import { createRng, days, hours, minutes } from "@trireme/core";
import { llama3Causes } from "@trireme/fault-tolerance";
import {
  type Incident,
  type RunInput,
  type Symptom,
  playRun,
  simulateHistory,
} from "@trireme/fault-tolerance/simulation";

/** What shows of a cause of each class. */
const symptoms: Record<(typeof llama3Causes)[number]["class"], Symptom> = {
  host: "evidence",
  network: "silence",
  software: "software",
  planned: "evidence",
  silent: "degraded",
};

/** Faults at Llama 3's rate (419 in 54 days on 2,048 hosts), with its causes by count. */
function llama3Incidents(hosts: number, horizon: number, seed: number): Incident[] {
  const rng = createRng(seed);
  const rate = (419 / (54 * days(1) * 2048)) * hosts;
  const total = llama3Causes.reduce((sum, each) => sum + each.count, 0);
  const incidents: Incident[] = [];
  for (let time = 0; ;) {
    time -= Math.log1p(-rng.float()) / rate;
    if (time > horizon) return incidents;
    let left = rng.integer(total);
    const cause = llama3Causes.find(({ count }) => (left -= count) < 0)!;
    const symptom = symptoms[cause.class];
    const detect = symptom === "degraded" ? hours(1) : 60;
    incidents.push({ time, symptom, hosts: [rng.integer(hosts)], detect, cause: cause.name });
  }
}

function run(hosts: number, horizon: number, seed: number): RunInput {
  const all = Array.from({ length: hosts + 8 }, (_, host) => host);
  return {
    options: {
      hosts: all.slice(0, hosts),
      standbys: all.slice(hosts),
      deadline: 60,
      unit: 16,
      minimum: hosts / 2,
    },
    times: {
      heartbeat: 10,
      step: 10,
      checkpoint: { every: 30, write: 2, durable: 60 },
      leave: 20,
      start: minutes(5),
      repair: hours(12),
    },
    incidents: llama3Incidents(hosts, horizon, seed),
    horizon,
  };
}

const llama3 = run(2048, days(54), 1);
const months = 20;
const fleet = Array.from({ length: months }, (_, seed) => run(1536, days(30), seed));
let seed = 0;

export const benchmarks = [
  {
    id: "fault-tolerance/llama3-54-days",
    what: "54 days of 16,384 GPUs (2,048 hosts, about 420 faults) under the recovery controller",
    unit: "s",
    better: "lower",
    target: 1,
    time: (): void => {
      playRun(llama3);
    },
  },
  {
    id: "fault-tolerance/thousand-months",
    what: "1,000 Monte-Carlo months of 12,288 GPUs (1,536 hosts), from 20 of them",
    unit: "s",
    better: "lower",
    target: 60,
    measure: (): number => {
      const before = process.cpuUsage();
      for (const month of fleet) playRun(month);
      const { user, system } = process.cpuUsage(before);
      return ((user + system) / 1e6 / months) * 1000;
    },
    repeats: 3,
  },
  {
    id: "fault-tolerance/histories",
    what: "10,000 random histories of the controller with their checks, from 500 of them",
    unit: "s",
    better: "lower",
    target: 60,
    measure: (): number => {
      const before = process.cpuUsage();
      for (let i = 0; i < 500; i++) simulateHistory(seed++);
      const { user, system } = process.cpuUsage(before);
      return ((user + system) / 1e6) * 20;
    },
    repeats: 3,
  },
] as const;

import fc from "fast-check";
import { expect, test } from "vitest";
import { hours } from "@trireme/core";
import { readAcmeTrace } from "@trireme/fault-tolerance";
import {
  type Job,
  acmeJobs,
  coupledEvaluation,
  decoupledEvaluation,
  simulateJobs,
} from "@trireme/simulator/jobs";

function job(o: Partial<Job>): Job {
  return {
    id: "a",
    team: "t",
    kind: "train",
    gpus: 8,
    priority: 0,
    submitted: 0,
    work: hours(1),
    checkpointEvery: 600,
    ...o,
  };
}

const cluster = { hosts: 2, gpusPerHost: 8 };

test("a gang waits for all its hosts, and small jobs go ahead where they fit", () => {
  const jobs = [
    job({ id: "first", gpus: 8 }),
    job({ id: "gang", gpus: 16, submitted: 1 }),
    job({ id: "small", gpus: 2, submitted: 2, work: 60 }),
  ];
  const { records } = simulateJobs({ ...cluster, jobs });
  expect(records.map((r) => r.started)).toEqual([0, 3600, 2]);
  const strict = simulateJobs({ ...cluster, jobs, rules: { backfill: false } });
  expect(strict.records[2]!.started).toBe(7200);
});

test("a job of higher priority stops others after two hours, and they go on from their checkpoints", () => {
  const jobs = [
    job({ id: "low", gpus: 16, work: hours(5), checkpointEvery: 3000 }),
    job({ id: "high", gpus: 8, priority: 5, submitted: 600, work: 3600 }),
  ];
  const { records, preemptionLoss, goodput, utilisation } = simulateJobs({ ...cluster, jobs });
  const [low, high] = records;
  expect(high!.started).toBe(7200);
  expect(low!.preempted).toBe(1);
  // Two hours hold two checkpoints of 3,000 s; 1,200 s on 16 GPUs are done again.
  expect(preemptionLoss).toBe(1200 * 16);
  expect(low!.ended).toBe(7200 + 3600 + hours(5) - 6000);
  expect(low!.lost).toBe(1200);
  expect(goodput).toBeLessThan(1);
  expect(utilisation).toBeLessThan(1);
});

test("only as many are stopped as are needed, the lowest and youngest first", () => {
  const jobs = [
    job({ id: "old", work: hours(9) }),
    job({ id: "young", submitted: 60, work: hours(9) }),
    job({ id: "high", priority: 1, submitted: 120 }),
  ];
  const { records } = simulateJobs({ ...cluster, jobs });
  expect(records.map((r) => r.preempted)).toEqual([1, 0, 0]);
  // The old one had its two hours first; a minute later the young one would have gone.
  expect(records[2]!.started).toBe(7200);
});

test("quotas hold a team back while others go on", () => {
  const jobs = ["a", "b"]
    .map((id) => job({ id, team: "small" }))
    .concat(job({ id: "c", team: "big" }));
  const { records } = simulateJobs({ ...cluster, jobs, rules: { quotas: { small: 8 } } });
  expect(records.map((r) => r.started)).toEqual([0, 3600, 0]);
});

test("a requeue storm of failing jobs costs those below it", () => {
  const victim = job({ id: "victim", gpus: 16, work: hours(20), checkpointEvery: hours(1) });
  const storm = job({
    id: "storm",
    gpus: 16,
    priority: 9,
    submitted: 1,
    work: hours(10),
    failsAfter: 300,
    requeues: 3,
    checkpointEvery: Infinity,
  });
  const alone = simulateJobs({ ...cluster, jobs: [victim] });
  const both = simulateJobs({ ...cluster, jobs: [victim, storm] });
  expect(both.records[1]).toMatchObject({ outcome: "failed", attempts: 4 });
  expect(both.records[0]!.preempted).toBeGreaterThanOrEqual(1);
  expect(both.goodput).toBeLessThan(alone.goodput);
});

test("a host that fails takes its jobs down, and is not used until it is back", () => {
  const jobs = [job({ gpus: 16, work: hours(4), checkpointEvery: hours(1) })];
  const outages = [{ host: 1, from: hours(2.5), to: hours(3) }];
  const { records } = simulateJobs({ ...cluster, jobs, outages, startup: 60 });
  expect(records[0]).toMatchObject({ interrupted: 1, attempts: 2, outcome: "completed" });
  // Two hours were kept; two more and another start come after the repair.
  expect(records[0]!.ended).toBe(hours(3) + 60 + hours(2));
});

test("seven days are the limit of an attempt", () => {
  const { records } = simulateJobs({ ...cluster, jobs: [job({ work: hours(400) })] });
  expect(records[0]).toMatchObject({ outcome: "limit", ended: hours(168) });
});

test("GPUs are never held twice, and every job's time adds up", () => {
  const jobs = fc.array(
    fc.record({
      gpus: fc.integer({ min: 0, max: 32 }),
      priority: fc.integer({ min: 0, max: 2 }),
      submitted: fc.integer({ min: 0, max: 20_000 }),
      work: fc.integer({ min: 0, max: 30_000 }),
      fails: fc.option(fc.integer({ min: 1, max: 20_000 }), { nil: undefined }),
    }),
    { maxLength: 25 },
  );
  fc.assert(
    fc.property(jobs, (list) => {
      const all = list.map(({ fails, ...o }, i) =>
        job({
          ...o,
          id: `${i}`,
          ...(fails === undefined ? {} : { failsAfter: fails, requeues: 1 }),
        }),
      );
      const { records, utilisation, goodput } = simulateJobs({
        hosts: 4,
        gpusPerHost: 8,
        jobs: all,
      });
      expect(utilisation).toBeLessThanOrEqual(1 + 1e-9);
      expect(goodput).toBeLessThanOrEqual(1 + 1e-9);
      for (const r of records) {
        expect(r.outcome).not.toBe("unfinished");
        // From submission to the end a job waits or runs.
        expect(r.ended - r.job.submitted).toBeCloseTo(r.queued + r.ran, 6);
        if (r.outcome === "completed") expect(r.ran - r.lost).toBeCloseTo(r.job.work, 6);
      }
    }),
    { numRuns: 100 },
  );
});

test("jobs of Acme's columns are replayed", () => {
  const header =
    "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time";
  const rows = [
    "2,u2,2,16,256,Pretrain,CANCELLED,2023-03-01 00:01:00+08:00,2023-03-01 00:01:10+08:00,2023-03-01 03:01:10+08:00,10800,10,172800.0",
    "1,u1,1,8,128,Other,FAILED,2023-03-01 00:00:00+08:00,2023-03-01 00:00:32+08:00,2023-03-01 01:00:32+08:00,3600,32,28800.0",
    "3,u1,1,0,16,Other,COMPLETED,2023-03-01 00:02:00+08:00,2023-03-01 00:02:00+08:00,2023-03-01 00:03:00+08:00,60,0,0.0",
  ];
  const jobs = acmeJobs(readAcmeTrace([header, ...rows]));
  expect(jobs.map((j) => [j.id, j.gpus, j.submitted, j.work, j.priority])).toEqual([
    ["1", 8, 0, 3600, 0],
    ["2", 16, 60, 10_800, 2],
    ["3", 0, 120, 60, 0],
  ]);
  const { records } = simulateJobs({ hosts: 2, gpusPerHost: 8, jobs });
  expect(records.map((r) => r.started)).toEqual([0, 3600, 120]);
  expect(() => simulateJobs({ hosts: 1, gpusPerHost: 8, jobs })).toThrow("job 2 of 16 GPUs");
});

test("decoupled evaluation is faster, on one host and on four", () => {
  // 63 data sets of uneven length; as HumanEval's, a third of a trial is loading, a fifth metrics.
  const sets = Array.from({ length: 63 }, (_, i) => {
    const inference = 120 + 600 * (((i * 37) % 63) / 63) ** 2 + (i === 7 ? 900 : 0);
    return { name: `${i}`, inference, metric: 0.4 * inference };
  });
  const speedUp = (hosts: number): number => {
    const o = { sets, hosts, gpusPerHost: 8, load: 20, loadFromMemory: 5 };
    return coupledEvaluation(o).makespan / decoupledEvaluation(o).makespan;
  };
  // Acme: 1.3 on one host, 1.8 on four, on its own data sets.
  expect(speedUp(1)).toBeGreaterThan(1.2);
  expect(speedUp(4)).toBeGreaterThan(1.2);
  const none = { sets: [], hosts: 1, gpusPerHost: 8, load: 20, loadFromMemory: 5 };
  expect(coupledEvaluation(none).makespan).toBe(0);
  expect(() => coupledEvaluation({ ...none, hosts: 0 })).toThrow("hosts 0");
});

import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import type { DriverEvent } from "@trireme/runtime/node";
import { afterEach, describe, expect, it } from "vitest";
import { type Job, newJob } from "../driver/job.ts";

let job: Job | undefined;
afterEach(() => {
  // Whatever a test did: no process of its run is left.
  expect(job?.alive()).toEqual([]);
  job?.clear();
  job = undefined;
});

const isLaunch =
  (generation: number) =>
  (event: DriverEvent): boolean =>
    event.kind === "launch" && event.launch.generation === generation;

/** Every step that was saved by all in a generation is trained in no later one. */
function expectNoSavedStepTwice(events: readonly DriverEvent[]): void {
  let saved = 0;
  for (const event of events) {
    if (event.kind === "progress") saved = event.step;
    if (event.kind === "launch") expect(event.step).toBe(saved + 1);
  }
}

describe("driver and agents", () => {
  it.each([
    ["exit", { kind: "exit", rank: 1, code: 7 }],
    ["babble", { kind: "declared", rank: 1, scope: "software" }],
  ])("restart all ranks in place when a worker does this: %s", async (what, failure) => {
    job = newJob({ steps: 40, stepMs: 15 });
    const driver = await job.driver();
    const agents = [0, 1].map((host) => job!.agent(host, driver.endpoint));
    await job.until((event) => event.kind === "progress" && event.step >= 2, "step 2");
    job.command(what, 1);
    expect(await driver.result).toMatchObject({ ok: true, reason: "finished", step: 40 });
    await Promise.all(agents.map((agent) => agent.result));
    expect(job.agentEvents).toContainEqual(
      expect.objectContaining({ kind: "failure", failure: expect.objectContaining(failure) }),
    );
    expect(job.events.some(isLaunch(2))).toBe(true);
    expectNoSavedStepTwice(job.events);
  });

  it("evict a host that a worker declared faulty, and hire the standby", async () => {
    job = newJob({ steps: 40, stepMs: 15 });
    const driver = await job.driver({ standbys: 1 });
    const agents = [0, 1, 2].map((host) => job!.agent(host, driver.endpoint));
    await job.until((event) => event.kind === "progress" && event.step >= 2, "step 2");
    job.command("declare", 1);
    expect(await driver.result).toMatchObject({ ok: true, step: 40, unreached: [] });
    const ends = await Promise.all(agents.map((agent) => agent.result));
    expect(ends.map(({ ok }) => ok)).toEqual([true, false, true]);
    expect(ends[1]!.reason).toMatch(/^host 1 was evicted: /);
    const launches = job.events.flatMap((e) => (e.kind === "launch" ? [e.launch] : []));
    expect(launches.at(-1)!.members.map(({ host }) => host)).toEqual([0, 2]);
    expectNoSavedStepTwice(job.events);
  });

  it("notice a worker that hangs, and go on without its stopped process", async () => {
    job = newJob({ steps: 40, stepMs: 15 });
    const driver = await job.driver();
    const options = { stallDeadline: 0.5 };
    const agents = [0, 1].map((host) => job!.agent(host, driver.endpoint, options));
    await job.until((event) => event.kind === "progress", "step 1");
    job.command("hang", 0);
    expect(await driver.result).toMatchObject({ ok: true, step: 40 });
    await Promise.all(agents.map((agent) => agent.result));
    const failure = job.agentEvents.find((event) => event.kind === "failure");
    expect(failure).toMatchObject({ failure: { kind: "stall", rank: 0 } });
  });

  it("leave no orphan: not even a child in a session of its own whose parent is gone", async () => {
    job = newJob({ steps: 30, stepMs: 20 });
    const driver = await job.driver();
    const agents = [0, 1].map((host) => job!.agent(host, driver.endpoint));
    job.command("spawn", 0);
    await job.until((event) => event.kind === "progress" && event.step >= 4, "step 4");
    const before = job.alive();
    expect(before.length).toBeGreaterThanOrEqual(4); // two workers, two sleepers
    job.command("crash", 1);
    await job.until(isLaunch(2), "generation 2");
    expect(before.filter((pid) => job!.alive().includes(pid))).toEqual([]);
    await driver.result;
    await Promise.all(agents.map((agent) => agent.result));
  });

  it("evict an agent that has vanished", async () => {
    job = newJob({ steps: 1000, stepMs: 20 });
    const driver = await job.driver({ deadline: 0.8, minimum: 2 });
    const agents = [0, 1].map((host) => job!.agent(host, driver.endpoint));
    await job.until((event) => event.kind === "progress", "step 1");
    await agents[1]!.close();
    const end = await driver.result;
    await agents[0]!.result;
    expect(end.ok).toBe(false);
    expect(job.events).toContainEqual(
      expect.objectContaining({
        kind: "evict",
        host: 1,
        reason: expect.stringContaining("silent"),
      }),
    );
  });
});

it("a host that nobody drives takes its workers down when its lease is over, and says so", async () => {
  job = newJob({ steps: 60, stepMs: 20 });
  const lease = { deadline: 1.5, lease: 1 };
  const port = 20_000 + (process.pid % 12_000);
  const first = await job.driver({ ...lease, listen: { port } });
  const agents = [0, 1].map((host) => job!.agent(host, first.endpoint));
  await job.until((event) => event.kind === "progress", "step 1");
  await first.close();
  await expect.poll(() => job!.alive(), { timeout: 3000 }).toEqual([]);
  const second = await job.driver({ ...lease, listen: { port } });
  expect(await second.result).toMatchObject({ ok: true, step: 60 });
  await Promise.all(agents.map((agent) => agent.result));
  expect(job.agentEvents).toContainEqual(
    expect.objectContaining({ failure: expect.objectContaining({ kind: "lease" }) }),
  );
  expectNoSavedStepTwice(job.events);
});

it("an agent that is started anew finds its place, and the others begin a new generation", async () => {
  job = newJob({ steps: 40, stepMs: 20 });
  const driver = await job.driver({ deadline: 10 });
  const first = [0, 1].map((host) => job!.agent(host, driver.endpoint));
  await job.until((event) => event.kind === "progress" && event.step >= 2, "step 2");
  await first[1]!.close();
  const second = job.agent(1, driver.endpoint);
  expect(await driver.result).toMatchObject({ ok: true, step: 40 });
  await Promise.all([first[0]!.result, second.result]);
  expect(job.events.some(isLaunch(2))).toBe(true);
  expectNoSavedStepTwice(job.events);
});

const python = "python3";
it.skipIf(spawnSync(python, ["--version"]).error !== undefined)(
  "the worker in Python of the guide trains, saves, and ends at the agreed step",
  async () => {
    const guide = readFileSync(new URL("../../../../docs/drive-hosts.md", import.meta.url), "utf8");
    const [, program] = /```python\n(.*?)```/s.exec(guide)!;
    const code = `import time\nsteps = 100000\n${program!.replace("...", "time.sleep(0.01)")}`;
    job = newJob();
    const driver = await job.driver();
    const worker = { kind: "process", command: python, arguments: ["-c", code] } as const;
    const agents = [0, 1].map((host) => job!.agent(host, driver.endpoint, { worker }));
    await job.until((event) => event.kind === "progress" && event.step >= 2, "step 2");
    driver.stop();
    const end = await driver.result;
    await Promise.all(agents.map((agent) => agent.result));
    expect(end).toMatchObject({ ok: true, reason: `stopped as asked after step ${end.step}` });
    expect(end.step).toBeGreaterThanOrEqual(2);
  },
);

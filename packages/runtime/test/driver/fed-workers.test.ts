import { expect, it } from "vitest";
import { expectSameBatchesAfterAKill, fedJob } from "./fed-job.ts";

it("ranks that are threads read on where they were saved when one fails, from a new loader", async () => {
  const lines = await expectSameBatchesAfterAKill("thread", { actors: "inline" });
  expect(lines.every(({ data }) => data === "its own")).toBe(true);
});

it("a loader that cannot start is a fault of the software, told with its reason, and nothing hangs", async () => {
  const { job, options, lines } = fedJob("process", { sources: [] });
  const driver = await job.driver({ hosts: 1, restarts: 1 });
  const agent = job.agent(0, driver.endpoint, options(1));
  const result = await driver.result;
  await agent.result;
  expect(result.ok).toBe(false);
  expect(result.reason).toMatch(/crash loop/);
  const failure = job.agentEvents.find(({ kind }) => kind === "failure");
  expect(failure).toMatchObject({
    failure: {
      kind: "declared",
      scope: "software",
      reason: expect.stringContaining("the data loader of host 0 failed: sources  are not those"),
    },
  });
  expect(lines()).toEqual([]);
});

it("a loader that gives up takes its generation with it", async () => {
  // Ranks that ask no step for so long, while two are made ahead.
  const { job, options } = fedJob("thread", { rankDeadline: 0.2, actors: "inline" });
  const driver = await job.driver({ hosts: 1, restarts: 0 });
  const given = options(1);
  const file = new URL("idle-worker.mjs", import.meta.url);
  const agent = job.agent(0, driver.endpoint, { ...given, worker: { kind: "thread", file } });
  const result = await driver.result;
  await agent.result;
  expect(result).toMatchObject({ ok: false });
  const failure = job.agentEvents.find(({ kind }) => kind === "failure");
  expect(failure).toMatchObject({
    failure: { reason: expect.stringMatching(/the data loader of host 0 failed: .*rank 0/) },
  });
});

import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { TriremeError } from "@trireme/core";
import type { DriverEvent } from "@trireme/runtime/node";
import { afterEach, describe, expect, it } from "vitest";
import { type Job, newJob } from "./job.ts";

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
  it("carry a run of two hosts to its end", async () => {
    job = newJob({ steps: 5 });
    const driver = await job.driver();
    const agents = [0, 1].map((host) => job!.agent(host, driver.endpoint, { ranks: 2 }));
    const end = await driver.result;
    expect(end).toEqual({ ok: true, reason: "finished", step: 5, unreached: [] });
    for (const agent of agents) expect(await agent.result).toMatchObject({ ok: true });
    expect(job.steps().length).toBe(4 * 5);
    const lines = job.events.flatMap((event) => (event.kind === "log" ? event.lines : []));
    const master = job.events.flatMap((e) => (e.kind === "launch" ? [e.launch.master] : []))[0]!;
    expect(lines.toSorted()).toEqual(
      [0, 1, 2, 3].map((rank) => `rank ${rank} of 4 at 127.0.0.1:${master.port}`),
    );
    const losses = job.events.filter((e) => e.kind === "metrics" && e.rank === 3);
    expect(losses.map((e) => e.kind === "metrics" && e.values["loss"])).toEqual(
      [1, 2, 3, 4, 5].map((step) => 1 / step),
    );
  });

  it.each([["crash", { kind: "signal", rank: 1, signal: "SIGKILL" }]])(
    "restart all ranks in place when a worker does this: %s",
    async (what, failure) => {
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
    },
  );

  it("give a crash loop up, with the reason", async () => {
    job = newJob();
    const driver = await job.driver({ restarts: 2 });
    const worker = { kind: "process", command: "false" } as const;
    const agents = [0, 1].map((host) => job!.agent(host, driver.endpoint, { worker }));
    const end = await driver.result;
    expect(end.ok).toBe(false);
    expect(end.reason).toContain("crash loop");
    for (const agent of agents) expect((await agent.result).reason).toBe(end.reason);
  });

  it("say which program could not be started", async () => {
    job = newJob();
    const driver = await job.driver({ restarts: 1 });
    const worker = { kind: "process", command: "/no/such/program" } as const;
    const agents = [0, 1].map((host) => job!.agent(host, driver.endpoint, { worker }));
    await driver.result;
    await Promise.all(agents.map((agent) => agent.result));
    const failure = job.agentEvents.find((event) => event.kind === "failure");
    expect(failure).toMatchObject({ failure: { kind: "start" } });
    expect(JSON.stringify(failure)).toContain("ENOENT");
  });

  it.each([
    ["a process", { kind: "process", command: process.execPath, arguments: ["a\0b"] }],
    ["a thread", { kind: "thread", file: new URL("http://localhost/worker.mjs") }],
  ] as const)("say why the system refuses %s at once", async (_, worker) => {
    job = newJob();
    const driver = await job.driver({ restarts: 1 });
    const agents = [0, 1].map((host) => job!.agent(host, driver.endpoint, { worker }));
    expect(await driver.result).toMatchObject({ ok: false });
    await Promise.all(agents.map((agent) => agent.result));
    const failure = job.agentEvents.find((event) => event.kind === "failure");
    expect(failure).toMatchObject({ failure: { kind: "start", reason: expect.any(String) } });
  });

  it("go on where a worker measures NaN, in JavaScript's words and in Python's", async () => {
    job = newJob({ steps: 6, stepMs: 20 });
    const driver = await job.driver();
    job.command("nan", 0);
    job.command("nan", 1);
    const agents = [0, 1].map((host) => job!.agent(host, driver.endpoint));
    expect(await driver.result).toMatchObject({ ok: true, step: 6 });
    await Promise.all(agents.map((agent) => agent.result));
    expect(job.agentEvents.filter((event) => event.kind === "failure")).toEqual([]);
    const told = job.events.filter((e) => e.kind === "metrics" && "norm" in e.values);
    expect(told.map((e) => e.kind === "metrics" && e.values)).toEqual([{ norm: 1 }, { norm: 1 }]);
  });

  it("take a fault for what it is, however long its reason", async () => {
    job = newJob({ steps: 1000 });
    const driver = await job.driver({ hosts: 1, standbys: 1, joinDeadline: 10 });
    const agents = [0, 1].map((host) => job!.agent(host, driver.endpoint));
    await job.until((event) => event.kind === "progress", "a step");
    job.command("declare-at-length", 0);
    const evicted = await job.until((event) => event.kind === "evict", "the eviction");
    expect(evicted).toMatchObject({ host: 0, reason: expect.stringContaining("ECC error") });
    driver.stop();
    await driver.result;
    await Promise.all(agents.map((agent) => agent.result));
  });

  it("run ranks as threads of the agent too, and end those that do not end by themselves", async () => {
    job = newJob();
    const file = join(job.directory, "thread.mjs");
    writeFileSync(
      file,
      `import { parentPort } from "node:worker_threads";
       const { RANK, TRIREME_GENERATION: generation, TRIREME_STEP } = process.env;
       let step = Number(TRIREME_STEP);
       console.log("thread of rank", RANK);
       if (RANK === "1" && generation === "1") throw new Error("thread gives up");
       // Rank 0 of the first generation never ends: it must be ended.
       if (RANK === "0" && generation === "1") setInterval(() => {}, 1e6);
       else {
         parentPort.on("message", ({ kind }) => {
           if (kind === "end" || step > 3) return parentPort.close();
           parentPort.postMessage({ kind: "saved", step: step++ });
           if (step > 3) parentPort.close();
           else parentPort.postMessage({ kind: "begin", step });
         });
         parentPort.postMessage({ kind: "begin", step });
       }`,
    );
    const driver = await job.driver();
    const worker = { kind: "thread", file: pathToFileURL(file) } as const;
    const agents = [0, 1].map((host) => job!.agent(host, driver.endpoint, { worker }));
    expect(await driver.result).toMatchObject({ ok: true, step: 3 });
    await Promise.all(agents.map((agent) => agent.result));
    const lines = job.events.flatMap((event) => (event.kind === "log" ? event.lines : []));
    expect(lines).toContain("thread of rank 0");
    expect(lines.join("\n")).toContain("thread gives up");
  });
});

describe("a stop that was asked for", () => {
  it("ends every rank after the same step", async () => {
    job = newJob({ steps: 1000, stepMs: 7 });
    const driver = await job.driver();
    const agents = [0, 1].map((host) => job!.agent(host, driver.endpoint, { ranks: 2 }));
    await job.until((event) => event.kind === "progress" && event.step >= 3, "step 3");
    driver.stop();
    driver.stop(); // a second signal changes nothing
    const end = await driver.result;
    await Promise.all(agents.map((agent) => agent.result));
    expect(end.reason).toBe(`stopped as asked after step ${end.step}`);
    const last = [0, 1, 2, 3].map((rank) =>
      Math.max(...job!.steps().flatMap(([, r, step]) => (r === rank ? [step!] : []))),
    );
    expect(last).toEqual([end.step, end.step, end.step, end.step]);
  });

  it("sends SIGTERM to programs that never ask for a step", async () => {
    job = newJob();
    const driver = await job.driver();
    const worker = {
      kind: "process",
      command: "sh",
      arguments: ["-c", "trap 'echo saving; exit 0' TERM; echo up; while :; do sleep 0.05; done"],
    } as const;
    const agents = [0, 1].map((host) => job!.agent(host, driver.endpoint, { worker }));
    await job.until((e) => e.kind === "log" && e.rank === 0 && e.lines.includes("up"), "up 0");
    await job.until((e) => e.kind === "log" && e.rank === 1 && e.lines.includes("up"), "up 1");
    driver.stop();
    expect(await driver.result).toMatchObject({
      ok: true,
      reason: "stopped as asked after step 0",
    });
    await Promise.all(agents.map((agent) => agent.result));
    const lines = job.events.flatMap((event) => (event.kind === "log" ? event.lines : []));
    expect(lines.filter((line) => line === "saving").length).toBe(2);
  });

  it("before every host has joined ends the run at once", async () => {
    job = newJob();
    const driver = await job.driver();
    driver.stop();
    const end = await driver.result;
    expect(end).toMatchObject({
      ok: true,
      reason: "stopped as asked before every host had joined",
    });
  });
});

describe("options", () => {
  const nowhere = { address: "127.0.0.1", port: 9 };

  it.each([
    [{ grace: Number.NaN }, "grace = NaN s must be 0 or more, and finite"],
    [{ grace: Infinity }, "grace = Infinity s must be 0 or more, and finite"],
    [{ lostDeadline: Number.NaN }, "lostDeadline = NaN s must be above 0"],
    [{ stallDeadline: 0 }, "stallDeadline = 0 s must be above 0"],
    [
      { drivers: [{ ...nowhere, port: 70_000 }] },
      "driver at 127.0.0.1:70000: a port is 1 to 65535",
    ],
    [{ run: "" }, 'run = "" has 0 bytes; a name has 1 to 256, and no control characters'],
    [{ run: "a\nb" }, 'run = "a\\nb" has 3 bytes'],
    [{ run: "x".repeat(257) }, "has 257 bytes"],
    [
      { security: { tls: { key: "k", certificate: "c", authority: "a" } } },
      "tls: key and certificates cannot be used: ",
    ],
  ])("of an agent that cannot work are refused at once: %j", (options, message) => {
    job = newJob();
    expect(() => job!.agent(0, nowhere, options)).toThrow(message);
  });

  it.each([
    [{ endDeadline: Number.NaN }, "endDeadline = NaN s must be 0 or more, and finite"],
    [{ messageLimit: Number.NaN }, "messageLimit = NaN must be a whole number of at least 1024"],
    [{ run: "" }, 'run = "" has 0 bytes'],
    [{ listen: { port: 70_000 } }, "cannot listen at 127.0.0.1:70000: "],
  ])("of a driver that cannot work are refused at once: %j", async (options, message) => {
    job = newJob();
    await expect(job.driver(options)).rejects.toThrow(message);
    await expect(job.driver(options)).rejects.toBeInstanceOf(TriremeError);
  });
});

describe("waits", () => {
  it("of the rendezvous end with the names of who is missing", async () => {
    job = newJob();
    const driver = await job.driver({ hosts: 4, joinDeadline: 0.4 });
    const agents = [0, 2].map((host) => job!.agent(host, driver.endpoint));
    const end = await driver.result;
    expect(end.ok).toBe(false);
    expect(end.reason).toBe("rendezvous: host 1, host 3 did not join within 0.4 s");
    for (const agent of agents) expect(await agent.result).toMatchObject({ reason: end.reason });
  });

  it("of an agent for a driver end with the addresses that it tried", async () => {
    job = newJob();
    const agent = job.agent(0, { address: "127.0.0.1", port: 9 }, { lostDeadline: 0.3 });
    const end = await agent.result;
    expect(end.reason).toMatch(/^no driver at 127\.0\.0\.1:9 for 0\.3 s \(last: .*ECONNREFUSED/);
  });
});

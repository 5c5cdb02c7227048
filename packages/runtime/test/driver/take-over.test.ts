import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { bundle } from "./bundle.ts";
import { type Cast, type Programs, newCast, portOf } from "./take-over.ts";

let programs: Programs;
beforeAll(async () => {
  const [driver, agent] = await bundle("driver-main", "agent-main");
  programs = { driver: driver!, agent: agent! };
});

let cast: Cast | undefined;
afterEach(async () => {
  await cast?.end();
  cast = undefined;
});

/** Ports that agents are told before anyone listens there: below those that any connection may hold. */
let port = 20_000 + (process.pid % 12_000);

describe("a driver that is killed", () => {
  it("is taken over by the one that waits, and training goes on without a restart", async () => {
    cast = newCast(programs);
    const [onePort, otherPort] = [port++, port++];
    const first = cast.driver(onePort);
    await portOf(first);
    const second = cast.driver(otherPort);
    const agents = [0, 1].map((host) => cast!.agent(host, [onePort, otherPort], 80));
    await first.until((said) => said.kind === "progress" && Number(said["step"]) >= 5, "step 5");
    await first.kill();
    const end = await second.until(({ kind }) => kind === "result", "the end");
    expect(end["result"]).toMatchObject({ ok: true, reason: "finished", step: 80 });
    expect(second.said.find(({ kind }) => kind === "lead")).toMatchObject({
      term: 2,
      resumed: true,
    });
    // No generation but the first: the workers never noticed.
    expect(second.said.filter(({ kind }) => kind === "launch" || kind === "halt")).toEqual([]);
    expect(cast.job.steps().every(([generation]) => generation === 1)).toBe(true);
    expect(cast.job.steps().length).toBe(2 * 80);
    await Promise.all(agents.map(({ gone }) => gone));
  });
});

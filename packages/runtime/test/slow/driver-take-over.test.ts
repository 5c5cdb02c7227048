import { beforeAll, describe, expect, it } from "vitest";
import { bundle } from "../driver/bundle.ts";
import { type Programs, dieAtWrite, newCast, portOf } from "../driver/take-over.ts";

let programs: Programs;
beforeAll(async () => {
  const [driver, agent] = await bundle("driver-main", "agent-main");
  programs = { driver: driver!, agent: agent! };
});

it("a driver killed before or after any of its writes is taken over, and nothing saved is lost", async () => {
  // Below the ephemeral ports: any connection of this machine may hold one of those.
  let port = 21_000 + (process.pid % 9000);
  let deaths = 0;
  for (const when of ["before", "after"] as const) {
    // Until a run comes to its end before the driver has written so often.
    for (let write = 0; write < 40; write++) {
      const { died, savedTwice, result } = await dieAtWrite(programs, port++, { write, when });
      expect(savedTwice).toBe(false);
      expect(result).toMatchObject({ ok: true, reason: "finished", step: 12 });
      if (!died) break;
      deaths++;
    }
  }
  expect(deaths).toBeGreaterThanOrEqual(8);
});

describe("an agent that is killed", () => {
  it("has its workers killed by its guard, and is replaced by the next agent of its host", async () => {
    const cast = newCast(programs);
    const driver = cast.driver(0);
    const where = await portOf(driver);
    const kept = cast.agent(0, [where], 100);
    const lost = cast.agent(1, [where], 100);
    await driver.until(({ kind }) => kind === "progress", "progress");
    expect(cast.job.alive().length).toBe(2);
    await lost.kill();
    await expect.poll(() => cast.job.alive().length, { timeout: 3000 }).toBe(1);
    const again = cast.agent(1, [where], 100);
    const end = await driver.until(({ kind }) => kind === "result", "the end");
    expect(end["result"]).toMatchObject({ ok: true, step: 100 });
    expect(driver.said.filter(({ kind }) => kind === "launch").length).toBe(2);
    await Promise.all([kept.gone, again.gone]);
    await cast.end();
  });
});

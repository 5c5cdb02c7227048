import { createRng } from "@trireme/core";
import { beforeAll, expect, it } from "vitest";
import { bundle } from "../driver/bundle.ts";
import type { Child } from "../driver/child.ts";
import { type Programs, newCast, portOf } from "../driver/take-over.ts";

let programs: Programs;
beforeAll(async () => {
  const [driver, agent] = await bundle("driver-main", "agent-main");
  programs = { driver: driver!, agent: agent! };
});

const sleep = (seconds: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, seconds * 1000);
  });

it.each([1, 2, 3])(
  "workers, agents and drivers killed at random end in a finished run, seed %i",
  async (seed) => {
    const rng = createRng(seed);
    const cast = newCast(programs);
    const steps = 300;
    const port = 20_000 + (process.pid % 12_000) + seed;
    try {
      const options = { hosts: 3, standbys: 1, restarts: 50, deadline: 6 };
      let driver = cast.driver(port, options);
      await portOf(driver);
      const drivers = [driver];
      const agents = [0, 1, 2, 3].map((host) => cast.agent(host, [port], steps));
      await driver.until(({ kind }) => kind === "progress", "progress");
      for (let round = 0; round < 8; round++) {
        await sleep(0.3 + 0.7 * rng.float());
        const host = rng.integer(3);
        switch (rng.integer(4)) {
          case 0:
            cast.job.command("crash", host);
            break;
          case 1:
            cast.job.command("exit", host);
            break;
          case 2:
            await agents[host]!.kill();
            agents[host] = cast.agent(host, [port], steps);
            break;
          default: {
            const next = cast.driver(port, options);
            await driver.kill();
            driver = next;
            drivers.push(next);
          }
        }
      }
      const end = await driver.until(({ kind }) => kind === "result", "the end");
      expect(end["result"]).toMatchObject({ ok: true, reason: "finished", step: steps });

      // Lines are appended as steps are done: once a generation trains, none before it does.
      const generations = cast.job.steps().map(([generation]) => generation!);
      expect(generations).toEqual(generations.toSorted((a, b) => a - b));
      expect(generations.at(-1)).toBeGreaterThan(2);
      expectSavedOnce(drivers);
    } finally {
      await cast.end();
    }
  },
);

/** A generation begins right after the last step that all have saved. */
function expectSavedOnce(drivers: readonly Child[]): void {
  let saved = 0;
  for (const { kind, step } of drivers.flatMap(({ said }) => said)) {
    if (kind === "progress") saved = Math.max(saved, Number(step));
    if (kind === "launch") expect(Number(step)).toBeGreaterThan(saved);
  }
}

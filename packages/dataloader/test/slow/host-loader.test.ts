import { readdirSync } from "node:fs";
import { join } from "node:path";
import { createRng } from "@trireme/core";
import { type ActorKind, type SourceSpec, startHostLoader } from "@trireme/dataloader/node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { common, plannerOf, readSteps, writeSources } from "../host-loader-fixture.ts";

let sources: SourceSpec[] = [];
let remove = (): void => undefined;
beforeAll(async () => {
  ({ sources, remove } = await writeSources());
});
afterAll(() => remove());

test.each<ActorKind>(["thread", "process"])(
  "killing loaders in a real %s changes nothing",
  async (actors) => {
    const here = { dp: 2, cp: 1, tp: 1, microbatches: 1, method: "greedy" } as const;
    const planner = plannerOf(here);
    const calm = await readSteps({ ...common, planner, sources, actors: "inline" }, 12);
    const rng = createRng(6);
    const got = await readSteps(
      { ...common, planner, sources, actors, sourceHosts: 2, shadows: [1], attempts: 20 },
      12,
      (loader) => {
        if (rng.float() < 0.4) loader.actors()[rng.integer(loader.actors().length)]!.kill();
      },
    );
    expect(got.orders).toEqual(calm.orders);
    expect(got.state).toEqual(calm.state);
    expect(got.replaced.total).toBeGreaterThan(0);
  },
);

test("a run's folder of memory is gone when it is closed", async () => {
  const planner = plannerOf({ dp: 1, cp: 1, tp: 1, microbatches: 1, method: "order" });
  const loader = await startHostLoader({
    ...common,
    planner,
    sources,
    actors: "process",
    steps: 1,
  });
  const { ring } = loader.feed(0);
  expect(ring.kind).toBe("file");
  const folder = ring.kind === "file" ? join(ring.path, "..") : "";
  expect(readdirSync(folder)).toContain("0-0-0.ring");
  await loader.done;
  loader.close();
  expect(() => readdirSync(folder)).toThrow("ENOENT");
});

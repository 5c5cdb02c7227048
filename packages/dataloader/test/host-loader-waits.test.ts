import { join } from "node:path";
import { type SourceSpec, startHostLoader } from "@trireme/dataloader/node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { common, plannerOf, writeSources } from "./host-loader-fixture.ts";

let directory = "";
let sources: SourceSpec[] = [];
let remove = (): void => undefined;
beforeAll(async () => {
  ({ directory, sources, remove } = await writeSources());
});
afterAll(() => remove());

test("a loader ends after its steps, and its ranks with it", async () => {
  const planner = plannerOf({ dp: 1, cp: 1, tp: 1, microbatches: 1, method: "order" });
  const loader = await startHostLoader({ ...common, planner, sources, actors: "inline", steps: 3 });
  const steps: number[] = [];
  for await (const { step } of loader.batches(0)) steps.push(step);
  expect(steps).toEqual([0, 1, 2]);
  await loader.done;
  loader.close();
});

test("a rank that takes nothing stops the loader at its prefetch, and is named when time is up", async () => {
  const here = { dp: 2, cp: 1, tp: 1, microbatches: 1, method: "order" } as const;
  const planner = plannerOf(here);
  const loader = await startHostLoader({
    ...common,
    planner,
    sources,
    actors: "inline",
    prefetch: 3,
    rankDeadline: 0.2,
  });
  const eager = loader.batches(0);
  for (let step = 0; step < 3; step++) expect((await eager.next()).value!.step).toBe(step);
  expect(() => loader.plan(3)).toThrow("step 3 is not kept; kept are 0 to 2");
  await expect(loader.done).rejects.toThrow(
    "rank 1 has not taken step 0 of share 1, slice 0 for 0.2 s",
  );
  await expect(eager.next()).rejects.toThrow(
    "the loader of share 0, slice 0 gave up before step 3",
  );
  loader.close();
});

test("a rank that waits in vain is told whom for, and a signal ends its wait", async () => {
  const here = { dp: 2, cp: 1, tp: 1, microbatches: 1, method: "order" } as const;
  const planner = plannerOf(here);
  const loader = await startHostLoader({
    ...common,
    planner,
    sources,
    actors: "inline",
    prefetch: 1,
  });
  // Rank 1 reads nothing, so step 1 is never made.
  const impatient = loader.batches(0, { deadline: 0.1 });
  await impatient.next();
  await expect(impatient.next()).rejects.toThrow(
    "the data constructor of share 0, slice 0 has not delivered step 1 to rank 0 for 0.1 s; its last was 0",
  );
  const abort = new AbortController();
  const waiting = loader.batches(0, { signal: abort.signal }).next();
  setTimeout(() => abort.abort(new Error("enough")), 20);
  await expect(waiting).rejects.toThrow("enough");
  loader.close();
});

test("a source that hangs or fails is named with its host", async () => {
  const here = { dp: 1, cp: 1, tp: 1, microbatches: 1, method: "order" } as const;
  const planner = plannerOf(here);
  const module = (body: string): string =>
    `data:text/javascript,${encodeURIComponent(`export ${body}`)}`;
  const withLarge = (body: string): SourceSpec[] => [
    ...sources.slice(0, 2),
    { name: "large", module: module(body) },
  ];
  const hanging = await startHostLoader({
    ...common,
    planner,
    sources: withLarge(
      "const openSource = () => ({ fingerprint: 'x', samples: 5, describe: () => ({ tokens: 1 }), read: () => new Promise(() => {}) })",
    ),
    actors: "inline",
    deadline: 0.1,
    attempts: 2,
  });
  await expect(hanging.done).rejects.toThrow(
    "reading step 0 on source host 0 (small, middle, large) failed 2 times, each with a new loader; the last: source host 0 has not answered for 0.1 s",
  );
  hanging.close();
  const missing = { ...common, planner, actors: "inline" } as const;
  await expect(
    startHostLoader({ ...missing, sources: withLarge("const other = 1") }),
  ).rejects.toThrow("source large: data:text/javascript");
  await expect(
    startHostLoader({
      ...missing,
      sources: [...sources.slice(0, 2), { name: "large", prefix: join(directory, "none") }],
    }),
  ).rejects.toThrow("none.bin: no such file");
});

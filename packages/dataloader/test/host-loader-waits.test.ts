import { readdirSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { loadProgram, placeTree } from "@trireme/dataloader";
import { type SourceSpec, startHostLoader } from "@trireme/dataloader/node";
import { afterAll, beforeAll, expect, test } from "vitest";
import { common, globalBatch, names, plannerOf, writeSources } from "./host-loader-fixture.ts";

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

const alone = { dp: 1, cp: 1, tp: 1, microbatches: 1, method: "order" } as const;

test("options that are none are refused in a line", async () => {
  const planner = plannerOf(alone);
  const start = (change: object) => startHostLoader({ ...common, planner, sources, ...change });
  const odd: [object, string][] = [
    [{ ranks: [] }, "no ranks: a host without any needs no loader"],
    [{ steps: 1.5 }, "steps 1.5 is not a count"],
    [{ seed: NaN }, "seed NaN is not a safe integer"],
    [{ actors: "threads" }, 'actors "threads"; use thread, process, inline'],
    [{ slotBytes: NaN }, "slotBytes NaN hold nothing"],
    [{ sourceHosts: 2, shadows: [0.5] }, "a shadow for source host 0.5"],
  ];
  for (const [change, message] of odd) await expect(start(change)).rejects.toThrow(message);
});

test("a host whose ranks are all passed their data by others ends at once instead of planning for ever", async () => {
  const tree = placeTree([
    { name: "tp", size: 2, data: "same" },
    { name: "dp", size: 1, data: "distinct" },
  ]);
  const planner = loadProgram({ tree, sources: names, globalBatch }).broadcastAt("tp").plan();
  const loader = await startHostLoader({
    ...common,
    planner,
    sources,
    actors: "inline",
    ranks: [1],
  });
  await loader.done;
  expect(() => loader.feed(1)).toThrow("rank 1 gets its data from rank 0");
  loader.close();
});

test("a loader is reshaped by one call at a time, and not after it was closed", async () => {
  const [planner, two] = [plannerOf(alone), plannerOf({ ...alone, dp: 2 })];
  const loader = await startHostLoader({ ...common, planner, sources, actors: "inline" });
  await loader.batches(0).next();
  const first = loader.reshape(1, { planner: two });
  await expect(loader.reshape(1, { planner })).rejects.toThrow(
    "is being reshaped; await that first",
  );
  await first;
  expect((await loader.batches(1).next()).value!.step).toBe(1);
  const closing = loader.reshape(1, { planner });
  loader.close();
  await expect(closing).rejects.toThrow("closed meanwhile");
  await loader.done;
});

// Open files are told by /proc.
test.runIf(process.platform === "linux")(
  "loaders in this thread let go of their files when they are closed",
  async () => {
    const openFiles = (): number =>
      readdirSync("/proc/self/fd").filter((fd) => {
        try {
          return readlinkSync(`/proc/self/fd/${fd}`).startsWith(directory);
        } catch {
          return false;
        }
      }).length;
    const before = openFiles();
    const loader = await startHostLoader({
      ...common,
      planner: plannerOf(alone),
      sources,
      actors: "inline",
    });
    await loader.batches(0).next();
    expect(openFiles()).toBe(before + sources.length);
    loader.close();
    await new Promise((done) => setTimeout(done, 0));
    expect(openFiles()).toBe(before);
  },
);

import type { ShareBatch } from "@trireme/dataloader";
import { type RankFeed, rankBatches } from "@trireme/dataloader/node";
import { GenerationLoader, decodeFeed, encodeFeed } from "@trireme/runtime/node";
import { afterAll, beforeAll, expect, it } from "vitest";
import { type LoaderFixture, loaderFixture } from "./loader-fixture.ts";

let fixture: LoaderFixture;
beforeAll(async () => {
  fixture = await loaderFixture();
});
afterAll(() => fixture.remove());

const silent = (): void => undefined;

/** The documents that all ranks together are given in a step, sorted. */
async function documents(streams: readonly AsyncGenerator<ShareBatch>[]): Promise<number[]> {
  const found = new Set<number>();
  for (const stream of streams) {
    const { value } = (await stream.next()) as { value: ShareBatch };
    for (const { tokens } of value.microbatches) for (const token of tokens) found.add(token);
  }
  return [...found].sort((a, b) => a - b);
}

function streamsOf(feeds: ReadonlyMap<number, RankFeed>): AsyncGenerator<ShareBatch>[] {
  return [...feeds.values()].map((feed) => rankBatches(feed, { deadline: 5 }));
}

it("each generation has a loader for its ranks, and goes on where the one before was saved", async () => {
  const unbroken = new GenerationLoader(silent);
  const whole = streamsOf(await unbroken.begin(0, fixture.options(2)));
  const reference = [];
  for (let step = 0; step < 6; step++) reference.push(await documents(whole));
  unbroken.close();

  const loaders = new GenerationLoader(silent);
  const first = await loaders.begin(1, fixture.options(2));
  expect([...first.keys()]).toEqual([0, 1]);
  const old = streamsOf(first);
  for (let step = 0; step < 3; step++) expect(await documents(old)).toEqual(reference[step]);
  const state: unknown = loaders.loader!.state(3);
  // A host was lost and two came: other ranks, the same samples.
  const second = await loaders.begin(4, fixture.options(3, { state }));
  expect([...second.keys()]).toEqual([0, 1, 2]);
  const fresh = streamsOf(second);
  for (let step = 3; step < 6; step++) expect(await documents(fresh)).toEqual(reference[step]);
  // Ranks of the old generation come to an end at once: what was made ahead, and no more.
  const left: number[] = [];
  for await (const { step } of old[0]!) left.push(step);
  expect(left.length).toBeLessThanOrEqual(3);
  loaders.close();
  expect(loaders.loader).toBeUndefined();
});

it("a host gets feeds for its own ranks only", async () => {
  const loaders = new GenerationLoader(silent);
  const feeds = await loaders.begin(0, fixture.options(4, { ranks: [2, 3] }));
  expect([...feeds.keys()]).toEqual([2, 3]);
  loaders.close();
});

it("what is late is refused: an old generation, one that was ended or followed while it began", async () => {
  const loaders = new GenerationLoader(silent);
  const overtaken = loaders.begin(1, fixture.options(1));
  const following = loaders.begin(2, fixture.options(1));
  await expect(overtaken).rejects.toThrow("generation 1 was over before its loader had started");
  const feeds = await following;
  expect(feeds.size).toBe(1);
  await expect(loaders.begin(2, fixture.options(1))).rejects.toThrow(
    "generation 2 is not new: it is an integer above 2, the last one begun or ended",
  );
  // The end of an old one leaves the running one alone.
  loaders.end(1);
  expect(loaders.loader).toBeDefined();
  const ended = loaders.begin(3, fixture.options(1));
  loaders.end(5);
  await expect(ended).rejects.toThrow("generation 3 was over");
  await expect(loaders.begin(5, fixture.options(1))).rejects.toThrow("above 5");
  expect(loaders.loader).toBeUndefined();
});

it("tells that a loader gave up while its generation lives, and only then", async () => {
  const failures: [number, string][] = [];
  const loaders = new GenerationLoader((generation, { message }) => {
    failures.push([generation, message]);
  });
  await loaders.begin(0, fixture.options(1));
  loaders.end(0);
  // The ranks take nothing: the loader gives up when their time is over.
  await loaders.begin(1, fixture.options(1, { rankDeadline: 0.05 }));
  for (let i = 0; i < 200 && failures.length === 0; i++) {
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  expect(failures).toEqual([[1, expect.stringMatching(/rank.* 0\b/)]]);
  loaders.close();
});

it("feeds of a process's own memory are not sent to another, and text that is none is refused", async () => {
  const loaders = new GenerationLoader(silent);
  const feeds = await loaders.begin(0, fixture.options(1));
  const feed = feeds.get(0)!;
  expect(() => encodeFeed(feed)).toThrow(
    'the feed of rank 0 cannot be sent: its ring is memory of this process; start the loader with actors "process"',
  );
  loaders.close();
  const { firstStep, name, readers, slots, slotWords } = feed.ring;
  const shape = { firstStep, name, readers, slots, slotWords };
  const ring = { ...shape, kind: "file", path: "/dev/shm/x" } as const;
  const sent: RankFeed = { rank: 7, reader: 0, ring };
  expect(decodeFeed(encodeFeed(sent))).toEqual(sent);
  expect(() => decodeFeed("{")).toThrow("no feed of a rank: {");
  expect(() => decodeFeed('{"rank":1}')).toThrow('no feed of a rank: {"rank":1}');
});

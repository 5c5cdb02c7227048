import fc from "fast-check";
import {
  type SampleSource,
  type SampleStream,
  datasetSource,
  documentSamples,
  sequentialSamples,
  sourceSeed,
  tokenDataset,
} from "@trireme/dataloader";
import { expect, test } from "vitest";

test("documents of a stream are samples, each once an epoch, in an order of the epoch's own", async () => {
  const ends = Float64Array.of(3, 4, 9, 11, 16);
  const dataset = tokenDataset(
    Int32Array.from({ length: 16 }, (_, i) => i),
    ends,
    16,
  );
  const source = documentSamples(datasetSource(dataset), ends, sourceSeed(1, "a"));
  const epochs: string[] = [];
  for (let epoch = 0; epoch < 4; epoch++) {
    const seen: number[][] = [];
    for (let i = 0; i < 5; i++) {
      const position = 5 * epoch + i;
      const tokens = await source.read(position);
      expect(await source.describe(position)).toEqual({ tokens: tokens.length });
      seen.push([...tokens]);
    }
    epochs.push(JSON.stringify(seen));
    expect(seen.sort((a, b) => a[0]! - b[0]!).flat()).toEqual(
      Array.from({ length: 16 }, (_, i) => i),
    );
  }
  expect(new Set(epochs).size).toBeGreaterThan(2);
  expect(() => documentSamples(datasetSource(dataset), new Float64Array(0), 1)).toThrow(
    "without documents",
  );
});

test("the order of a source follows from its name and the run's seed", () => {
  const seeds = [
    sourceSeed(1, "a"),
    sourceSeed(1, "b"),
    sourceSeed(2, "a"),
    sourceSeed(2 ** 40 + 1, "a"),
  ];
  expect(new Set(seeds).size).toBe(4);
  expect(sourceSeed(1, "a")).toBe(seeds[0]);
  for (const seed of seeds) expect(Number.isSafeInteger(seed)).toBe(true);
});

/** Ten samples; a cursor is how many were read. Counts what was read. */
function stream(): SampleStream<number> & { read: number } {
  const it = {
    fingerprint: "ten",
    read: 0,
    *open(cursor = 0) {
      for (let i = cursor; i < 10; i++) {
        it.read++;
        yield { tokens: Int32Array.of(i, i * i), next: i + 1 };
      }
    },
  };
  return it;
}

const first = async (source: SampleSource, position: number): Promise<number> =>
  (await source.read(position))[0]!;

test("a source that can only be read on gives the same from any snapshot", async () => {
  await fc.assert(
    fc.asyncProperty(fc.nat(40), fc.nat(10), fc.nat(30), async (released, ahead, further) => {
      const source = sequentialSamples(stream());
      await source.read(released + ahead);
      source.release!(released);
      const snapshot = JSON.parse(JSON.stringify(source.snapshot()));
      expect(snapshot.position).toBe(released);
      const again = sequentialSamples(stream(), snapshot);
      const position = released + further;
      expect(await first(again, position)).toBe(position % 10);
      expect(await again.describe(position)).toEqual({ tokens: 2 });
      expect(await first(source, position)).toBe(position % 10);
    }),
  );
});

test("replaying from a snapshot reads only what comes after it", async () => {
  const source = sequentialSamples(stream());
  await source.read(7);
  source.release!(6);
  const counted = stream();
  const again = sequentialSamples(counted, source.snapshot());
  expect(await first(again, 8)).toBe(8);
  expect(counted.read).toBe(3);
  // A snapshot at the end of an epoch begins the next.
  source.release!(8);
  expect(source.snapshot()).toEqual({ position: 8, cursor: 8 });
});

test("what is released is gone, and a stream without samples says so", async () => {
  const source = sequentialSamples(stream());
  await source.read(5);
  source.release!(3);
  await expect(source.read(2)).rejects.toThrow(
    "position 2 of stream ten is gone: it is read from 3 on",
  );
  expect(await first(source, 3)).toBe(3);
  const empty = sequentialSamples({ fingerprint: "none", open: () => [] });
  await expect(empty.read(0)).rejects.toThrow("stream none has no samples");
  const after = sequentialSamples(
    { fingerprint: "none", open: () => [] },
    { position: 5, cursor: 1 },
  );
  await expect(after.read(5)).rejects.toThrow("stream none has no samples");
});

test("a read that fails is tried again where the stream stood, not taken for the end of the epoch", async () => {
  let failures = 2;
  const source = sequentialSamples<number>({
    fingerprint: "flaky",
    *open(cursor) {
      for (let i = cursor ?? 0; i < 5; i++) {
        if (i === 2 && failures-- > 0) throw new Error("the disk is away");
        yield { tokens: Int32Array.of(i), next: i + 1 };
      }
    },
  });
  const seen: unknown[] = [];
  for (let position = 0; position < 6;) {
    try {
      seen.push((await source.read(position))[0]);
      position++;
    } catch (error) {
      seen.push(String(error));
    }
  }
  const away = "Error: the disk is away";
  expect(seen).toEqual([0, 1, away, away, 2, 3, 4, 0]);
});

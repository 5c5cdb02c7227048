/** Three small sources on disk, and what every rank of every layout must be given of them. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRng } from "@trireme/core";
import {
  type LoadingPlan,
  type Planner,
  type SampleSource,
  type ShareBatch,
  datasetSource,
  documentSamples,
  loadProgram,
  placeTree,
  sourceSeed,
  textCosts,
  tokenDataset,
  zigzagChunks,
} from "@trireme/dataloader";
import {
  type HostLoader,
  type HostLoaderOptions,
  type SourceSpec,
  startHostLoader,
  writeMegatronFiles,
} from "@trireme/dataloader/node";
import { expect } from "vitest";

/** Documents of each source; the tokens of a document are a number that no other has. */
export const counts = [7, 20, 31];
export const names = ["small", "middle", "large"];
export const globalBatch = 12;
const sequence = 16;
export const common = { seed: 11, construct: { sequence, method: "best-fit" } } as const;

const rng = createRng(4);
const datasets = counts.map((count, s) => {
  const ends: number[] = [];
  const tokens: number[] = [];
  for (let d = 0; d < count; d++) {
    for (let length = 1 + rng.integer(12); length > 0; length--) tokens.push(100 * (s + 1) + d);
    ends.push(tokens.length);
  }
  return tokenDataset(Int32Array.from(tokens), Float64Array.from(ends), 500);
});

/** The same sources in memory. */
const expected: readonly SampleSource[] = datasets.map((dataset, s) =>
  documentSamples(
    datasetSource(dataset),
    Float64Array.from(dataset.documents),
    sourceSeed(common.seed, names[s]!),
  ),
);

/** Writes the sources; `remove` deletes them. */
export async function writeSources(): Promise<{
  directory: string;
  sources: SourceSpec[];
  remove: () => void;
}> {
  const directory = mkdtempSync(join(tmpdir(), "trireme-host-"));
  for (const [s, dataset] of datasets.entries())
    await writeMegatronFiles(join(directory, names[s]!), dataset);
  const sources = names.map((name) => ({ name, prefix: join(directory, name) }));
  return { directory, sources, remove: () => rmSync(directory, { recursive: true }) };
}

/** A way to lay a run out over ranks. */
export interface Layout {
  readonly dp: number;
  readonly cp: number;
  readonly tp: number;
  readonly microbatches: number;
  readonly method: "order" | "greedy" | "karmarkar-karp";
}

/** The planner of a layout: weights that move, so that sources come and go. */
export function plannerOf({ dp, cp, tp, microbatches, method }: Layout): Planner {
  const tree = placeTree({
    axes: { tp: "same", cp: "sliced", dp: "distinct" },
    sizes: { tp, cp, dp },
    order: "tp-cp-dp",
  });
  const schedule = [
    { step: 0, weights: [1, 2, 3] },
    { step: 9, weights: [3, 1, 1] },
  ];
  return loadProgram({ tree, sources: names, globalBatch, microbatches })
    .mix({ schedule })
    .distribute("dp")
    .cost(textCosts({ linear: 1, quadratic: 0.1 }))
    .balance(method)
    .plan();
}

/** Segments of a share's rows, put together from its slices: "token x length", by microbatch. */
function segmentsOf(slices: readonly ShareBatch[]): string[][] {
  const [first] = slices;
  return first!.microbatches.map(({ rows, boundaryEnds, boundaries }, m) => {
    const whole = new Int32Array(rows * sequence);
    slices.forEach(({ microbatches }, slice) => {
      const { tokens, width } = microbatches[m]!;
      for (let row = 0; row < rows; row++) {
        let at = row * width;
        for (const { start, end } of zigzagChunks(sequence, slices.length, slice)) {
          whole.set(tokens.subarray(at, at + end - start), row * sequence + start);
          at += end - start;
        }
      }
    });
    const segments: string[] = [];
    boundaryEnds.forEach((end, row) => {
      for (let b = row === 0 ? 0 : boundaryEnds[row - 1]!; b < end - 1; b++) {
        const from = row * sequence + boundaries[b]!;
        segments.push(whole.subarray(from, row * sequence + boundaries[b + 1]!).join(" "));
      }
    });
    return segments.sort();
  });
}

/** The samples of a plan's microbatches as they must come. */
function plannedSegments(plan: LoadingPlan, share: number): string[][] {
  return Array.from({ length: plan.microbatches }, (_, m) => {
    const segments: string[] = [];
    plan.sources.forEach((source, i) => {
      if (plan.shareOf[i] === share && plan.microbatchOf[i] === m)
        segments.push(documentOf(source, plan.positions[i]!));
    });
    return segments.sort();
  });
}

function documentOf(source: number, position: number): string {
  return (expected[source]!.read(position) as Int32Array).join(" ");
}

/**
 * Reads steps from `first` on with all ranks at once and checks that each was given what the plan says.
 * Returns the documents of each global batch in order. `disturb` is called before each step.
 */
export async function readFrom(
  loader: HostLoader,
  { spec: { tree } }: Planner,
  first: number,
  steps: number,
  disturb: (loader: HostLoader) => void = () => undefined,
): Promise<string[][]> {
  const streams = tree.places.map(({ rank }) => loader.batches(rank));
  const orders: string[][] = [];
  for (let step = first; step < first + steps; step++) {
    disturb(loader);
    const batches = await Promise.all(
      streams.map(async (stream) => (await stream.next()).value as ShareBatch),
    );
    const plan = loader.plan(step);
    for (const batch of batches) expect(batch.step).toBe(step);
    for (let share = 0; share < tree.shares; share++) {
      const slices = tree.places
        .filter((place) => place.share === share && place.rank === place.fetcher)
        .sort((a, b) => a.slice - b.slice);
      const got = segmentsOf(slices.map(({ rank }) => batches[rank]!));
      expect(got).toEqual(plannedSegments(plan, share));
    }
    // Tensor ranks have the same as the rank beside them.
    for (const { rank, fetcher } of tree.places) expect(batches[rank]).toEqual(batches[fetcher]);
    orders.push(Array.from(plan.sources, (source, i) => documentOf(source, plan.positions[i]!)));
  }
  return orders;
}

/** Starts a loader, reads so many steps from where its state stands, and ends it. */
export async function readSteps(
  options: HostLoaderOptions,
  steps: number,
  disturb?: (loader: HostLoader) => void,
): Promise<{ orders: string[][]; state: unknown; replaced: { total: number; byShadow: number } }> {
  const loader = await startHostLoader(options);
  try {
    const { planner: at } = (options.state ?? { planner: { step: 0 } }) as {
      planner: { step: number };
    };
    const orders = await readFrom(loader, options.planner, at.step, steps, disturb);
    const state = steps === 0 ? options.state : loader.state(at.step + steps);
    return { orders, state, replaced: loader.replaced() };
  } finally {
    loader.close();
  }
}

/** A source on disk and planners of it, for host loaders. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Planner, loadProgram, placeTree, textCosts, tokenDataset } from "@trireme/dataloader";
import { type HostLoaderOptions, writeMegatronFiles } from "@trireme/dataloader/node";

export interface LoaderFixture {
  /** What starts a loader of `dp` ranks. */
  options(dp: number, more?: Partial<HostLoaderOptions>): HostLoaderOptions;
  remove(): void;
}

function plannerOf(dp: number): Planner {
  const tree = placeTree({ axes: { dp: "distinct" }, sizes: { dp }, order: "dp" });
  return loadProgram({ tree, sources: ["numbers"], globalBatch: 12, microbatches: 1 })
    .mix({ schedule: [{ step: 0, weights: [1] }] })
    .distribute("dp")
    .cost(textCosts({ linear: 1, quadratic: 0 }))
    .balance("order")
    .plan();
}

/** Writes 40 documents of five tokens, each a number of its own from 1 on: 0 is padding. */
export async function loaderFixture(): Promise<LoaderFixture> {
  const directory = mkdtempSync(join(tmpdir(), "trireme-loader-"));
  const tokens = Int32Array.from({ length: 200 }, (_, i) => 1 + Math.floor(i / 5));
  const ends = Float64Array.from({ length: 40 }, (_, i) => 5 * (i + 1));
  const prefix = join(directory, "numbers");
  await writeMegatronFiles(prefix, tokenDataset(tokens, ends, 50));
  const construct = { sequence: 16, method: "best-fit" } as const;
  return {
    options: (dp, more = {}) => ({
      planner: plannerOf(dp),
      sources: [{ name: "numbers", prefix }],
      seed: 3,
      construct,
      actors: "inline",
      ...more,
    }),
    remove: () => rmSync(directory, { recursive: true }),
  };
}

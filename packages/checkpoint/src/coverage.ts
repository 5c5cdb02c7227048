/**
 * Whether regions tile a tensor: each element in exactly one. Regions that lie inside, share nothing
 * pairwise and have together as many elements as the tensor leave no hole, so three cheap tests decide.
 */
import { type Region, elements, intersectRegions, printRegion } from "./region.ts";
import { RegionIndex } from "./region-index.ts";

/** The answer, with the first defect found. */
export type Coverage = { readonly ok: true } | { readonly ok: false; readonly reason: string };

/** Whether each element of a tensor of `shape` lies in exactly one of the regions. */
export function coverage(shape: readonly number[], regions: readonly Region[]): Coverage {
  let sum = 0;
  for (const region of regions) {
    const inside =
      region.start.length === shape.length &&
      region.shape.length === shape.length &&
      shape.every((size, dim) => {
        const [start, length] = [region.start[dim]!, region.shape[dim]!];
        return start >= 0 && length >= 1 && start + length <= size;
      });
    if (!inside) {
      const what = `region ${printRegion(region)} is no part of [${shape.join(", ")}]`;
      return { ok: false, reason: `${what}; it must have its dims, lie inside and not be empty` };
    }
    sum += elements(region.shape);
  }
  const index = new RegionIndex(regions);
  for (const [i, region] of regions.entries()) {
    let other: number | undefined;
    index.overlapping(region, (j) => {
      if (j !== i && intersectRegions(region, regions[j]!) !== undefined) other ??= j;
    });
    if (other !== undefined) {
      const pair = `${printRegion(region)} and ${printRegion(regions[other]!)}`;
      return { ok: false, reason: `regions ${pair} overlap; each element must be in one` };
    }
  }
  const wanted = elements(shape);
  if (sum === wanted) return { ok: true };
  const part = `regions cover ${sum} of the ${wanted} elements of [${shape.join(", ")}]`;
  return { ok: false, reason: `${part}; none may be missing` };
}

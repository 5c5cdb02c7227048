import type { Bucket } from "./bucket.ts";
import { type HeldPart, partsIn, segmentRange, storedKinds, writeBox } from "./pieces.ts";
import type { StateTensor } from "./stored-state.ts";

/** Fills a rank's parts of the tensors of a snapshot, each of which it has, whatever layout wrote it. */
export function loadState(
  buckets: readonly Bucket[],
  state: ReadonlyMap<string, StateTensor>,
): void {
  for (const bucket of buckets) {
    for (const kind of storedKinds) {
      for (const part of partsIn(bucket, kind, segmentRange(bucket.segment))) {
        loadPart(part, state.get(part.name)!);
      }
    }
    bucket.host?.takeValues();
  }
}

function loadPart(part: HeldPart, { pieces }: StateTensor): void {
  for (const box of part.boxes) for (const piece of pieces) writeBox(part, box, piece);
}

/** What a rank takes of a snapshot, whatever layout wrote it. */
import type { Bucket } from "../weights/bucket.ts";
import { floatsOf, isFloats } from "./floats-of.ts";
import type { PackedBucket } from "../packed/packed-bucket.ts";
import { type HeldPart, partsIn, segmentRange, storedKinds, writeBox } from "../weights/pieces.ts";
import type { StateTensor } from "./stored-state.ts";
import { wholeTensor } from "./whole-tensor.ts";

type State = ReadonlyMap<string, StateTensor>;

/** Fills a rank's parts of tensors; what the snapshot does not have stays as it begins. */
export function loadState(
  buckets: readonly Bucket[],
  packed: readonly PackedBucket[],
  state: State,
): void {
  for (const bucket of buckets) {
    for (const kind of storedKinds) {
      loadParts(partsIn(bucket, kind, segmentRange(bucket.segment)), state);
    }
    bucket.host?.giveValues(bucket.segment.value);
  }
  for (const bucket of packed) loadPacked(bucket, state);
}

/** Packed matrices as they were stored, or packed now. */
function loadPacked(bucket: PackedBucket, state: State): void {
  loadParts(
    bucket.keptParts.filter(({ name, dtype }) => state.get(name)?.dtype === dtype),
    state,
  );
  for (const { name, tensors } of bucket.parameters) {
    const found = state.get(name);
    if (found === undefined || !isFloats(found.dtype)) continue;
    if (tensors.some((tensor) => tensor.name === name && tensor.dtype === found.dtype)) continue;
    bucket.pack(name, floatsOf(found.dtype, wholeTensor(found)));
  }
}

function loadParts(parts: readonly HeldPart[], state: State): void {
  for (const part of parts) {
    const { pieces, dtype } = state.get(part.name) ?? { pieces: [] };
    for (const { region, bytes: stored } of pieces) {
      const isWider = dtype === "BF16" && part.dtype === "F32";
      const bytes = isWider ? new Uint8Array(floatsOf(dtype, stored).buffer) : stored;
      for (const box of part.boxes) writeBox(part, box, { region, bytes });
    }
  }
}

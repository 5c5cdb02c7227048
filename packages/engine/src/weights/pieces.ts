/**
 * The state of a model in pieces: which boxes of which tensors lie where in a rank's memory. Pieces of
 * all ranks together give whole tensors, whatever the layout, and those give every rank its part again.
 */
import {
  type Dtype,
  type Region,
  type RowMajor,
  copyRegion,
  flatRegions,
  intersectRegions,
} from "@trireme/checkpoint";
import { fromBf16 } from "@trireme/collectives";
import { copyBytes } from "@trireme/collectives/node";
import type { Bucket, Segment } from "./bucket.ts";
import { gradientElements } from "../memory/gradient-block.ts";
import { type Range, type Slice, partDims } from "../memory/slice.ts";
import { elements } from "../memory/tensor.ts";

/** What is kept of each parameter. */
export type TensorKind = "value" | "gradient" | "firstMoment" | "secondMoment";

/** The kinds that a checkpoint has. */
export const storedKinds = ["value", "firstMoment", "secondMoment"] as const;

/** A box of a tensor, and where it begins in the rank's part. */
interface Box {
  readonly region: Region;
  readonly local: readonly number[];
}

/** What lies together in a rank's memory of one tensor. */
export interface HeldPart {
  /** The name of the whole tensor in a checkpoint. */
  readonly name: string;
  readonly dtype: Dtype;
  /** Of the whole tensor. */
  readonly dims: readonly number[];
  /** The bytes here: elements of the rank's part, from some element on. */
  readonly memory: RowMajor;
  /** The boxes of the whole tensor that these are. */
  readonly boxes: readonly Box[];
  /** Of a matrix in fewer bits: the matrix in float32 that it is made from. */
  readonly unpacked?: { readonly name: string; readonly dims: readonly number[] };
}

/** Names of optimizer states are those of `@trireme/checkpoint`. */
function storedName(name: string, kind: TensorKind): string {
  if (kind === "firstMoment") return `optimizer.exp_avg.${name}`;
  if (kind === "secondMoment") return `optimizer.exp_avg_sq.${name}`;
  return name;
}

/** Whether a name in a checkpoint is that of an optimizer's state. */
export function isOptimizerState(name: string): boolean {
  return name.startsWith("optimizer.");
}

/** The parts of a bucket's parameters within a range of its flat block, of one kind. */
export function partsIn(bucket: Bucket, kind: TensorKind, { start, count }: Range): HeldPart[] {
  const block = bytesOf(bucket, kind);
  const first = bucket.segment.start;
  if (block.byteLength === 0) return [];
  return bucket.parameters.flatMap(({ spec: { name, dims, slice }, offset, size }) => {
    const begin = Math.max(offset, start);
    const end = Math.min(offset + size, start + count);
    if (begin >= end) return [];
    const bytes = block.subarray((begin - first) * 4, (end - first) * 4);
    const from = begin - offset;
    const shape = partDims(dims, slice);
    return [
      {
        name: storedName(name, kind),
        dtype: "F32" as const,
        dims,
        memory: { bytes, shape, from },
        boxes: boxesOf(dims, slice, from, end - offset),
      },
    ];
  });
}

/** What a bucket's segment holds of a kind, in float32: where it lies or, of gradients in BF16, a copy. */
function bytesOf({ segment, place, memory }: Bucket, kind: TensorKind): Uint8Array {
  if (kind !== "gradient") {
    const { pointer, size } = place.segment[kind];
    return new Uint8Array(place.pool.memory.buffer, pointer, size * 4);
  }
  // Gradients come to an update's place for the update only.
  const values = gradientElements(memory, segment.gradient);
  const { buffer, byteOffset, byteLength } =
    values instanceof Uint16Array ? fromBf16(values) : values;
  return new Uint8Array(buffer, byteOffset, byteLength);
}

/** The range of a bucket's flat block that its segment is. */
export function segmentRange({ start, count }: Segment): Range {
  return { start, count };
}

/** The boxes of a tensor that elements [from, to) of a slice are. */
export function boxesOf(
  dims: readonly number[],
  slice: Slice | undefined,
  from: number,
  to: number,
): readonly Box[] {
  const shape = partDims(dims, slice);
  const whole = from === 0 && to === elements(shape);
  const held = slicedBoxes(dims, slice);
  if (whole) return held;
  const flat = flatRegions(shape, from, to);
  return held.flatMap(({ region, local }) =>
    flat.flatMap((range): Box[] => {
      const shared = intersectRegions(range, { start: local, shape: region.shape });
      if (shared === undefined) return [];
      const start = shared.start.map((at, dim) => at - local[dim]! + region.start[dim]!);
      return [{ region: { start, shape: shared.shape }, local: shared.start }];
    }),
  );
}

function slicedBoxes(dims: readonly number[], slice: Slice | undefined): readonly Box[] {
  const start = dims.map(() => 0);
  if (slice === undefined) return [{ region: { start, shape: dims }, local: start }];
  let held = 0;
  return slice.ranges.map((range) => {
    const region = {
      start: start.with(slice.dim, range.start),
      shape: dims.with(slice.dim, range.count),
    };
    const local = start.with(slice.dim, held);
    held += range.count;
    return { region, local };
  });
}

/** Copies a box of a part to `bytes`, row-major. */
export function readBox(
  { memory, dims }: HeldPart,
  { region, local }: Box,
  bytes: Uint8Array,
): void {
  const { shape } = region;
  const to = { bytes, shape, from: 0 };
  const start = dims.map(() => 0);
  copyRegion(memory, local, to, start, shape, bytes.byteLength / elements(shape), copyBytes);
}

/** Copies what a box of a part shares with a stored one, whose bytes are row-major, into the part. */
export function writeBox(
  { memory }: HeldPart,
  box: Box,
  stored: { readonly region: Region; readonly bytes: Uint8Array },
): void {
  const shared = intersectRegions(box.region, stored.region);
  if (shared === undefined) return;
  const { bytes, region } = stored;
  const source = { bytes, shape: region.shape, from: 0 };
  const inSource = shared.start.map((at, dim) => at - region.start[dim]!);
  const inPart = shared.start.map((at, dim) => at - box.region.start[dim]! + box.local[dim]!);
  const width = bytes.byteLength / elements(region.shape);
  copyRegion(source, inSource, memory, inPart, shared.shape, width, copyBytes);
}

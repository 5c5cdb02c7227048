/** Gradients as whole tensors, from the pieces that ranks send. */
import { type Region, copyRegion } from "@trireme/checkpoint";
import type { Bucket } from "./bucket.ts";
import { partsIn, readBox, segmentRange } from "./pieces.ts";
import { elements } from "../memory/tensor.ts";

/** A box of a parameter's gradient, copied out. */
export interface GradientPiece {
  readonly name: string;
  /** Of the whole parameter. */
  readonly dims: readonly number[];
  readonly region: Region;
  readonly values: Float32Array<ArrayBuffer>;
}

/** The boxes that a bucket speaks for; with `all`, the others that it holds too. */
export function gradientPieces(bucket: Bucket, all: boolean): GradientPiece[] {
  if (!bucket.speaks && !all) return [];
  return partsIn(bucket, "gradient", segmentRange(bucket.segment)).flatMap((part) =>
    part.boxes.map((box) => {
      const { name, dims } = part;
      const values = new Float32Array(elements(box.region.shape));
      readBox(part, box, new Uint8Array(values.buffer));
      return { name, dims, region: box.region, values };
    }),
  );
}

/** Whole gradients by parameter from the pieces of ranks; `missing` where none of them has any. */
export function wholeGradients(
  pieces: Iterable<GradientPiece>,
  missing: number,
): ReadonlyMap<string, Float32Array> {
  const whole = new Map<string, Float32Array<ArrayBuffer>>();
  for (const { name, dims, region, values } of pieces) {
    const into = whole.get(name) ?? new Float32Array(elements(dims)).fill(missing);
    whole.set(name, into);
    const { start, shape } = region;
    const source = { bytes: new Uint8Array(values.buffer), shape, from: 0 };
    const target = { bytes: new Uint8Array(into.buffer), shape: dims, from: 0 };
    copyRegion(
      source,
      shape.map(() => 0),
      target,
      start,
      shape,
      4,
    );
  }
  return whole;
}

/**
 * The state of a model in pieces: what each rank holds of each tensor. Pieces of all ranks together
 * give whole tensors, whatever the layout, and whole tensors give every rank its part again.
 */
import type { Bucket, Segment } from "./bucket.ts";
import { type Slice, placePart, takePart } from "./slice.ts";
import { type Tensor, elements, view } from "./tensor.ts";

/** What is kept of each parameter. */
export type TensorKind = "value" | "gradient" | "firstMoment" | "secondMoment";

/** Elements of a rank's part of a tensor, copied out. */
export interface Piece {
  readonly name: string;
  readonly kind: TensorKind;
  /** Of the whole tensor. */
  readonly dims: readonly number[];
  readonly slice: Slice | undefined;
  /** Where the piece begins in the part that the slice cuts out. */
  readonly from: number;
  readonly values: Float32Array;
}

/** A whole tensor of some kind. */
export interface WholeTensor {
  readonly name: string;
  readonly kind: TensorKind;
  readonly dims: readonly number[];
  readonly values: Float32Array;
}

/** A tensor that a rank holds a part of. */
export interface HeldTensor extends Pick<WholeTensor, "name" | "dims"> {
  /** Kept, but not trained: it has no moments. */
  readonly isState: boolean;
}

/** Elements of a parameter in the segment that a rank updates. */
interface Overlap {
  readonly tensor: Tensor;
  /** Where it begins in the rank's part of the parameter. */
  readonly from: number;
}

function overlap(
  block: Tensor,
  segment: Segment,
  offset: number,
  size: number,
): Overlap | undefined {
  const begin = Math.max(offset, segment.start);
  const count = Math.min(offset + size, segment.start + block.size) - begin;
  if (count <= 0) return undefined;
  const pointer = block.pointer + (begin - segment.start) * 4;
  return { tensor: { pointer, dims: [count], size: count }, from: begin - offset };
}

/** Shapes of the pieces of some kind that a bucket speaks for, and where each begins in its segment. */
export function pieceShapes(
  { speaks, parameters, segment }: Bucket,
  kind: TensorKind,
): (Omit<Piece, "values"> & { readonly at: number; readonly count: number })[] {
  if (!speaks) return [];
  return parameters.flatMap(({ spec: { name, dims, slice }, offset, size }) => {
    const found = overlap(segment[kind], segment, offset, size);
    if (found === undefined) return [];
    const at = (found.tensor.pointer - segment[kind].pointer) / 4;
    return [{ name, kind, dims, slice, from: found.from, at, count: found.tensor.size }];
  });
}

/** The pieces that a bucket speaks for, copied. */
export function piecesOf(
  memory: WebAssembly.Memory,
  { speaks, parameters, segment }: Bucket,
  kinds: readonly TensorKind[],
): Piece[] {
  if (!speaks) return [];
  return parameters.flatMap(({ spec: { name, dims, slice }, offset, size }) =>
    kinds.flatMap((kind) => {
      const found = overlap(segment[kind], segment, offset, size);
      if (found === undefined) return [];
      const values = view(memory, found.tensor).slice();
      return [{ name, kind, dims, slice, from: found.from, values }];
    }),
  );
}

/** Whole tensors from the pieces of all ranks, by kind and name. Throws where some are missing. */
export function assemble(pieces: Iterable<Piece>): WholeTensor[] {
  const whole = new Map<string, WholeTensor & { missing: number }>();
  for (const { name, kind, dims, slice, from, values } of pieces) {
    const key = `${kind} ${name}`;
    let into = whole.get(key);
    if (into === undefined) {
      const size = elements(dims);
      into = { name, kind, dims, values: new Float32Array(size), missing: size };
      whole.set(key, into);
    }
    placePart(into.values, dims, slice, from, values);
    into.missing -= values.length;
  }
  for (const { name, kind, missing } of whole.values()) {
    if (missing !== 0) throw new Error(`${missing} elements of the ${kind} of ${name} are missing`);
  }
  return [...whole.values()].map(({ name, kind, dims, values }) => ({ name, kind, dims, values }));
}

/** Puts a bucket's parts of whole tensors in place: `find` gives one of a kind by name. */
export function loadBucket(
  memory: WebAssembly.Memory,
  bucket: Bucket,
  find: (name: string, kind: TensorKind) => Float32Array,
): void {
  const { parameters, segment } = bucket;
  for (const { spec, offset, size } of parameters) {
    for (const kind of ["value", "firstMoment", "secondMoment"] as const) {
      const found = overlap(segment[kind], segment, offset, size);
      if (found === undefined) continue;
      const whole = find(spec.name, kind);
      takePart(whole, spec.dims, spec.slice, found.from, view(memory, found.tensor));
    }
  }
}

/** A named tensor as bytes, and its values as a typed array. */
import { nearestName } from "@trireme/core";
import type { Dtype } from "./dtype.ts";
import { SafetensorsError } from "./safetensors-error.ts";

/** A tensor of a checkpoint: row-major elements in little-endian bytes. */
export interface TensorEntry {
  readonly name: string;
  readonly dtype: Dtype;
  /** Sizes of the dims; [] is a scalar. */
  readonly shape: readonly number[];
  readonly data: Uint8Array;
}

/** The tensor of that name; throws `TensorNotFound` with the nearest name there is. */
export function findTensor(tensors: readonly TensorEntry[], name: string): TensorEntry {
  return findNamed(tensors, name);
}

/** The one of that name; throws `TensorNotFound` with the nearest name there is. */
export function findNamed<T extends { readonly name: string }>(
  tensors: readonly T[],
  name: string,
): T {
  const found = tensors.find((tensor) => tensor.name === name);
  if (found !== undefined) return found;
  const near = nearestName(
    name,
    tensors.map((tensor) => tensor.name),
  );
  throw new SafetensorsError(
    "TensorNotFound",
    `no tensor "${name}" among ${tensors.length}` +
      (near === undefined ? "" : `; did you mean "${near}"?`),
  );
}

interface TypedArrayClass<T> {
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBufferLike, byteOffset: number, length: number): T;
}

/** The elements as 32-bit floats, a view where the bytes are aligned to 4 and else a copy. F32 only. */
export function float32Values(tensor: TensorEntry): Float32Array {
  return view(tensor, "F32", Float32Array);
}

/** The elements as 32-bit integers, a view where the bytes are aligned to 4 and else a copy. I32 only. */
export function int32Values(tensor: TensorEntry): Int32Array {
  return view(tensor, "I32", Int32Array);
}

function view<T>({ name, dtype, data }: TensorEntry, wanted: Dtype, Class: TypedArrayClass<T>): T {
  if (dtype !== wanted) {
    throw new SafetensorsError(
      "InvalidTensorView",
      `tensor "${name}" has dtype ${dtype}; ${wanted} is asked for`,
    );
  }
  const width = Class.BYTES_PER_ELEMENT;
  const aligned = data.byteOffset % width === 0 ? data : data.slice();
  return new Class(aligned.buffer, aligned.byteOffset, data.byteLength / width);
}

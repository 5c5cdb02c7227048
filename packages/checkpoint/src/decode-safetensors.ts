/**
 * The bytes of a safetensors file to tensors, strictly: before any tensor is touched its header is
 * read whole and must account for every byte.
 */
import { headerBytes, readHeader } from "./safetensors-header.ts";
import type { TensorEntry } from "./tensor-entry.ts";

/** A decoded file. */
export interface Safetensors {
  /** In the order of their data; each `data` is a view of the bytes given. */
  readonly tensors: readonly TensorEntry[];
  /** The texts under `__metadata__`; empty where the file has none. */
  readonly metadata: Readonly<Record<string, string>>;
}

/** Reads a whole file. Throws `SafetensorsError` with the kind of what is wrong. */
export function decodeSafetensors(bytes: Uint8Array): Safetensors {
  const start = headerBytes(bytes, bytes.byteLength);
  const { tensors, metadata } = readHeader(bytes.subarray(0, start), bytes.byteLength);
  return {
    tensors: tensors.map(({ name, dtype, shape, offset, size }) => ({
      name,
      dtype,
      shape,
      data: bytes.subarray(offset, offset + size),
    })),
    metadata,
  };
}

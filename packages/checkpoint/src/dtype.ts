/**
 * Element types of the safetensors format, narrowest first: the reference writer sorts tensors by
 * this order, descending, so that each starts at a multiple of its own width.
 */
import { SafetensorsError } from "./safetensors-error.ts";

const bitsOf = {
  BOOL: 8,
  F4: 4,
  F6_E2M3: 6,
  F6_E3M2: 6,
  U8: 8,
  I8: 8,
  F8_E5M2: 8,
  F8_E4M3: 8,
  F8_E8M0: 8,
  F8_E4M3FNUZ: 8,
  F8_E5M2FNUZ: 8,
  I16: 16,
  U16: 16,
  F16: 16,
  BF16: 16,
  I32: 32,
  U32: 32,
  F32: 32,
  C64: 64,
  F64: 64,
  I64: 64,
  U64: 64,
} as const;

/** The name of an element type, as it stands in a safetensors header. */
export type Dtype = keyof typeof bitsOf;

/** Every element type, narrowest first. */
export const dtypes: readonly Dtype[] = Object.keys(bitsOf).filter(isDtype);

/** Whether a text names an element type. */
export function isDtype(text: string): text is Dtype {
  return Object.hasOwn(bitsOf, text);
}

/** Bits of one element. */
export function dtypeBits(dtype: Dtype): number {
  return bitsOf[dtype];
}

/**
 * Bytes of a tensor. A shape of no dims is one element; a dim of 0 makes it empty. Refuses a dim that
 * is no count, a size above 2⁵³ (`ValidationOverflow`), and elements narrower than a byte that do not
 * fill the last one (`MisalignedSlice`).
 */
export function tensorBytes(name: string, dtype: Dtype, shape: readonly number[]): number {
  let elements = 1;
  for (const dim of shape) {
    if (!Number.isSafeInteger(dim) || dim < 0) {
      throw new SafetensorsError(
        "ValidationOverflow",
        `tensor "${name}" has shape [${shape.join(", ")}]; each dim must be an integer in 0..2^53-1`,
      );
    }
    elements *= dim;
  }
  const bits = elements * bitsOf[dtype];
  if (!Number.isSafeInteger(bits)) {
    throw new SafetensorsError(
      "ValidationOverflow",
      `tensor "${name}" of ${dtype} [${shape.join(", ")}] has more than 2^53-1 bits`,
    );
  }
  if (bits % 8 !== 0) {
    throw new SafetensorsError(
      "MisalignedSlice",
      `tensor "${name}" of ${dtype} [${shape.join(", ")}] has ${bits} bits; they must fill whole bytes`,
    );
  }
  return bits / 8;
}

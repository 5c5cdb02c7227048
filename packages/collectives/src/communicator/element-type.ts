/** The element types of the communicator: f32, i32, and bf16 held in a `Uint16Array`. */
import { type Bytes, TriremeError } from "@trireme/core";

/** Data of a communicator's operations; a `Uint16Array` holds bf16. */
export type Elements = Float32Array | Int32Array | Uint16Array;

export const elementTypes = ["f32", "i32", "bf16"] as const;
export type ElementType = (typeof elementTypes)[number];

export function elementType(data: Elements): ElementType {
  if (data instanceof Float32Array) return "f32";
  if (data instanceof Int32Array) return "i32";
  if (data instanceof Uint16Array) return "bf16";
  throw new TriremeError(
    "ELEMENT_TYPE",
    `data of type ${Object.prototype.toString.call(data)}; use Float32Array (f32), Int32Array (i32) or Uint16Array (bf16)`,
  );
}

export function elementBytes(type: ElementType): Bytes {
  return type === "bf16" ? 2 : 4;
}

/** The bytes of `count` elements of `data` from element `start` on. */
export function bytesOf(data: Elements, start = 0, count: number = data.length): Uint8Array {
  const size = data.BYTES_PER_ELEMENT;
  return new Uint8Array(data.buffer, data.byteOffset + start * size, count * size);
}

/** Whether two ranges of bytes share any. */
export function overlaps(a: Uint8Array, b: Uint8Array): boolean {
  return (
    a.buffer === b.buffer &&
    a.byteOffset < b.byteOffset + b.length &&
    b.byteOffset < a.byteOffset + a.length
  );
}

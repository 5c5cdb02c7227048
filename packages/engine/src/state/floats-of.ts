import type { Dtype } from "@trireme/checkpoint";
import { fromBf16 } from "@trireme/collectives";

/** Whether a tensor of this type is one in float32, or written out exactly as one. */
export function isFloats(dtype: Dtype | undefined): dtype is "F32" | "BF16" {
  return dtype === "F32" || dtype === "BF16";
}

/** A copy of the numbers of a tensor, in float32. */
export function floatsOf(dtype: "F32" | "BF16", bytes: Uint8Array): Float32Array<ArrayBuffer> {
  const { buffer } = Uint8Array.from(bytes);
  return dtype === "F32"
    ? new Float32Array(buffer)
    : Float32Array.from(fromBf16(new Uint16Array(buffer)));
}

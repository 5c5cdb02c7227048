import { copyRegion, dtypeBits } from "@trireme/checkpoint";
import type { StateTensor } from "./stored-state.ts";
import { elements } from "../memory/tensor.ts";

/** The bytes of a whole tensor, row-major, from its pieces. */
export function wholeTensor({ dtype, dims, pieces }: StateTensor): Uint8Array<ArrayBuffer> {
  const width = dtypeBits(dtype) / 8;
  const data = new Uint8Array(elements(dims) * width);
  const target = { bytes: data, shape: dims, from: 0 };
  for (const { region, bytes } of pieces) {
    const { start, shape } = region;
    const origin = dims.map(() => 0);
    copyRegion({ bytes, shape, from: 0 }, origin, target, start, shape, width);
  }
  return data;
}

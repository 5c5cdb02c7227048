/** BF16: the upper half of an f32, rounded to nearest, ties to even. */
import { areas, blockElements, compressKernel } from "./compress-kernel.ts";

/** Rounds f32 to bf16; infinities stay, NaN stays NaN. */
export function toBf16(data: Float32Array): Uint16Array {
  const out = new Uint16Array(data.length);
  const kernel = compressKernel();
  const input = new Float32Array(kernel.memory.buffer, areas.input, blockElements);
  const output = new Uint16Array(kernel.memory.buffer, areas.output, blockElements);
  for (let at = 0; at < data.length; at += blockElements) {
    const n = Math.min(blockElements, data.length - at);
    input.set(data.subarray(at, at + n));
    kernel.narrowBf16(areas.output, areas.input, n);
    out.set(output.subarray(0, n), at);
  }
  return out;
}

/** Widens bf16 to f32, exactly. */
export function fromBf16(data: Uint16Array): Float32Array {
  const out = new Float32Array(data.length);
  sumBf16(out, [data]);
  return out;
}

/** Adds bf16 vectors into `output`, in f32 and in their order; the first is taken as it is. */
export function sumBf16(output: Float32Array, terms: readonly Uint16Array[]): void {
  const kernel = compressKernel();
  const input = new Uint16Array(kernel.memory.buffer, areas.input, blockElements);
  const sum = new Float32Array(kernel.memory.buffer, areas.output, blockElements);
  for (let at = 0; at < output.length; at += blockElements) {
    const n = Math.min(blockElements, output.length - at);
    terms.forEach((term, i) => {
      input.set(term.subarray(at, at + n));
      if (i === 0) kernel.widenBf16(areas.output, areas.input, n);
      else kernel.addBf16(areas.output, areas.input, n);
    });
    output.set(sum.subarray(0, n), at);
  }
}

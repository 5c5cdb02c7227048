import type { Elements } from "@trireme/collectives";

/**
 * The sum of parts in their order, as the communicator of `@trireme/collectives` makes it, bit for
 * bit: f32 rounded after each addition; i32 wrapping; bf16 summed in f32 and rounded once, ties to even.
 */
export function sumInOrder(output: Elements, parts: readonly Elements[]): void {
  if (output instanceof Uint16Array) {
    const sum = new Float32Array(output.length);
    const word = new Uint32Array(1);
    const float = new Float32Array(word.buffer);
    parts.forEach((part, position) => {
      for (let i = 0; i < sum.length; i++) {
        word[0] = part[i]! << 16;
        sum[i] = position === 0 ? float[0]! : sum[i]! + float[0]!;
      }
    });
    const bits = new Uint32Array(sum.buffer);
    for (let i = 0; i < sum.length; i++) output[i] = narrow(bits[i]!);
    return;
  }
  const [first, ...others] = parts;
  const sum = first!.slice();
  for (const part of others) for (let i = 0; i < sum.length; i++) sum[i] = sum[i]! + part[i]!;
  output.set(sum);
}

/** The nearest bf16 of f32 bits, ties to even; a NaN stays one. */
function narrow(bits: number): number {
  if ((bits & 0x7fffffff) > 0x7f800000) return (bits >>> 16) | 0x40;
  return (bits + 0x7fff + ((bits >>> 16) & 1)) >>> 16;
}

/** BF16: the upper half of an f32, rounded to nearest, ties to even. */

const f32 = new Float32Array(1);
const u32 = new Uint32Array(f32.buffer);

/** Rounds f32 to bf16; infinities stay, NaN stays NaN. */
export function toBf16(data: Float32Array): Uint16Array {
  const out = new Uint16Array(data.length);
  const bits = new Uint32Array(1);
  const value = new Float32Array(bits.buffer);
  for (let i = 0; i < data.length; i++) {
    value[0] = data[i]!;
    const b = bits[0]!;
    out[i] =
      (b & 0x7fffffff) > 0x7f800000 ? (b >>> 16) | 64 : (b + 0x7fff + ((b >>> 16) & 1)) >>> 16;
  }
  return out;
}

/** Widens bf16 to f32, exactly. */
export function fromBf16(data: Uint16Array): Float32Array {
  const out = new Float32Array(data.length);
  const bits = new Uint32Array(out.buffer);
  for (let i = 0; i < data.length; i++) bits[i] = data[i]! << 16;
  return out;
}

/** The value of one bf16. */
export function bf16Value(bits: number): number {
  u32[0] = bits << 16;
  return f32[0]!;
}

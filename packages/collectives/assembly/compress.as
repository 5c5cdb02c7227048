// Compression of gradients and activations, in a memory of the module's own. `n` is a count of
// elements. What writes vectors of 16 may write up to 15 elements past the end of its output.

export { addBf16, narrowBf16, widenBf16 } from "./bf16";

/** out = out + a, 32-bit floats. */
export function addF32(out: usize, a: usize, n: usize): void {
  const end = out + (n << 2);
  const wide = out + ((n & ~3) << 2);
  while (out < wide) {
    v128.store(out, f32x4.add(v128.load(out), v128.load(a)));
    out += 16;
    a += 16;
  }
  while (out < end) {
    store<f32>(out, load<f32>(out) + load<f32>(a));
    out += 4;
    a += 4;
  }
}

/** The largest magnitude of a, or `largest`; NaN takes no part. */
export function largest(a: usize, n: usize, largest: f32): f32 {
  const end = a + (n << 2);
  const wide = a + ((n & ~3) << 2);
  let most = f32x4.splat(largest);
  while (a < wide) {
    most = f32x4.pmax(most, f32x4.abs(v128.load(a)));
    a += 16;
  }
  let one = max(
    max(f32x4.extract_lane(most, 0), f32x4.extract_lane(most, 1)),
    max(f32x4.extract_lane(most, 2), f32x4.extract_lane(most, 3)),
  );
  while (a < end) {
    const x = abs(load<f32>(a));
    if (x > one) one = x;
    a += 4;
  }
  return one;
}

/** out = the larger of out and the magnitude of a, element by element; NaN takes no part. */
export function largestEach(out: usize, a: usize, n: usize): void {
  const end = out + (n << 2);
  while (out < end) {
    v128.store(out, f32x4.pmax(v128.load(out), f32x4.abs(v128.load(a))));
    out += 16;
    a += 16;
  }
}

/** Four E4M3 codes in the lanes of a vector, ties to even; saturates, NaN is 0x7f. */
@inline
function toE4m3(x: v128): v128 {
  const sign = v128.and(i32x4.shr_u(x, 24), i32x4.splat(0x80));
  const size = f32x4.pmin(f32x4.splat(448), f32x4.abs(x));
  // Three bits of mantissa are kept, and the bias goes from 127 to 7.
  const odd = v128.and(i32x4.shr_u(size, 20), i32x4.splat(1));
  const near = i32x4.add(i32x4.add(size, i32x4.splat(0x7ffff)), odd);
  const normal = i32x4.sub(i32x4.shr_u(near, 20), i32x4.splat(120 << 3));
  // Below 2^-6 codes count steps of 2^-9, which is what the last bit of 2^14 is worth.
  const magic = f32x4.splat(16384);
  const steps = i32x4.sub(f32x4.add(size, magic), magic);
  const code = v128.bitselect(steps, normal, f32x4.lt(size, f32x4.splat(0.015625)));
  return v128.or(sign, v128.bitselect(i32x4.splat(0x7f), code, f32x4.ne(x, x)));
}

/** Four values of E4M3 codes in the lanes of a vector. */
@inline
function fromE4m3(code: v128): v128 {
  const size = v128.and(code, i32x4.splat(0x7f));
  const sign = i32x4.shl(v128.and(code, i32x4.splat(0x80)), 24);
  const value = f32x4.mul(i32x4.shl(size, 20), f32x4.splat(reinterpret<f32>(0x7b800000)));
  const nan = i32x4.eq(size, i32x4.splat(0x7f));
  return v128.or(v128.bitselect(f32x4.splat(NaN), value, nan), sign);
}

/** The scales of four elements: one for all, or one each. */
@inline
function scaleAt(scales: usize, each: bool): v128 {
  return each ? v128.load(scales) : v128.load32_splat(scales);
}

/** out = E4M3 of a / scale. */
export function quantize(out: usize, a: usize, scales: usize, n: usize, each: bool): void {
  const end = out + n;
  const step: usize = each ? 16 : 0;
  while (out < end) {
    const x0 = toE4m3(f32x4.div(v128.load(a), scaleAt(scales, each)));
    const x1 = toE4m3(f32x4.div(v128.load(a, 16), scaleAt(scales + step, each)));
    const x2 = toE4m3(f32x4.div(v128.load(a, 32), scaleAt(scales + 2 * step, each)));
    const x3 = toE4m3(f32x4.div(v128.load(a, 48), scaleAt(scales + 3 * step, each)));
    v128.store(
      out,
      i8x16.narrow_i16x8_u(i16x8.narrow_i32x4_u(x0, x1), i16x8.narrow_i32x4_u(x2, x3)),
    );
    out += 16;
    a += 64;
    scales += 4 * step;
  }
}

/** out = value of a x scale. */
export function dequantize(out: usize, a: usize, scales: usize, n: usize, each: bool): void {
  const end = a + n;
  const step: usize = each ? 16 : 0;
  while (a < end) {
    const codes = v128.load(a);
    const low = i16x8.extend_low_i8x16_u(codes);
    const high = i16x8.extend_high_i8x16_u(codes);
    const x0 = fromE4m3(i32x4.extend_low_i16x8_u(low));
    const x1 = fromE4m3(i32x4.extend_high_i16x8_u(low));
    const x2 = fromE4m3(i32x4.extend_low_i16x8_u(high));
    const x3 = fromE4m3(i32x4.extend_high_i16x8_u(high));
    v128.store(out, f32x4.mul(x0, scaleAt(scales, each)));
    v128.store(out, f32x4.mul(x1, scaleAt(scales + step, each)), 16);
    v128.store(out, f32x4.mul(x2, scaleAt(scales + 2 * step, each)), 32);
    v128.store(out, f32x4.mul(x3, scaleAt(scales + 3 * step, each)), 48);
    a += 16;
    out += 64;
    scales += 4 * step;
  }
}

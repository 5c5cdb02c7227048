// BF16 is the upper half of an f32. `n` is a count of elements.

/** Eight bf16 as two vectors of f32: zeros below each, the first four or the last. */
@inline
function low(x: v128): v128 {
  return i8x16.shuffle(i16x8.splat(0), x, 0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23);
}

@inline
function high(x: v128): v128 {
  return i8x16.shuffle(
    i16x8.splat(0),
    x,
    8,
    9,
    24,
    25,
    10,
    11,
    26,
    27,
    12,
    13,
    28,
    29,
    14,
    15,
    30,
    31,
  );
}

/** out = a widened from bf16 to f32. */
export function widenBf16(out: usize, a: usize, n: usize): void {
  const end = out + (n << 2);
  const wide = out + ((n & ~7) << 2);
  while (out < wide) {
    const x = v128.load(a);
    v128.store(out, low(x));
    v128.store(out, high(x), 16);
    out += 32;
    a += 16;
  }
  while (out < end) {
    store<u32>(out, (<u32>load<u16>(a)) << 16);
    out += 4;
    a += 2;
  }
}

/** out = out + a, out f32, a bf16. */
export function addBf16(out: usize, a: usize, n: usize): void {
  const end = out + (n << 2);
  const wide = out + ((n & ~7) << 2);
  while (out < wide) {
    const x = v128.load(a);
    v128.store(out, f32x4.add(v128.load(out), low(x)));
    v128.store(out, f32x4.add(v128.load(out, 16), high(x)), 16);
    out += 32;
    a += 16;
  }
  while (out < end) {
    store<f32>(out, load<f32>(out) + reinterpret<f32>((<u32>load<u16>(a)) << 16));
    out += 4;
    a += 2;
  }
}

/** Four f32 as bf16 in the low halves of their lanes. */
@inline
function rounded(bits: v128): v128 {
  const upper = i32x4.shr_u(bits, 16);
  const odd = v128.and(upper, i32x4.splat(1));
  const even = i32x4.shr_u(i32x4.add(i32x4.add(bits, i32x4.splat(0x7fff)), odd), 16);
  return v128.bitselect(v128.or(upper, i32x4.splat(64)), even, f32x4.ne(bits, bits));
}

/** out = a rounded from f32 to bf16, ties to even; NaN stays NaN. */
export function narrowBf16(out: usize, a: usize, n: usize): void {
  const end = a + (n << 2);
  const wide = a + ((n & ~7) << 2);
  while (a < wide) {
    v128.store(out, i16x8.narrow_i32x4_u(rounded(v128.load(a)), rounded(v128.load(a, 16))));
    out += 16;
    a += 32;
  }
  while (a < end) {
    const bits = load<u32>(a);
    const nan = (bits & 0x7fffffff) > 0x7f800000;
    const even = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    store<u16>(out, <u16>(nan ? (bits >> 16) | 64 : even));
    out += 2;
    a += 4;
  }
}

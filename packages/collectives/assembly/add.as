// Sums inside the communicator's arena. `n` is a count of elements; `out` may equal `a`.
// Float sums are lane-wise, so the result of an element does not depend on where it sits.

/** out = a + b, 32-bit floats. */
export function addF32(out: usize, a: usize, b: usize, n: usize): void {
  const end = out + (n << 2);
  const wide = out + ((n & ~15) << 2);
  while (out < wide) {
    v128.store(out, f32x4.add(v128.load(a), v128.load(b)));
    v128.store(out, f32x4.add(v128.load(a, 16), v128.load(b, 16)), 16);
    v128.store(out, f32x4.add(v128.load(a, 32), v128.load(b, 32)), 32);
    v128.store(out, f32x4.add(v128.load(a, 48), v128.load(b, 48)), 48);
    out += 64;
    a += 64;
    b += 64;
  }
  while (out < end) {
    store<f32>(out, load<f32>(a) + load<f32>(b));
    out += 4;
    a += 4;
    b += 4;
  }
}

/** out = a + b, 32-bit integers that wrap around. */
export function addI32(out: usize, a: usize, b: usize, n: usize): void {
  const end = out + (n << 2);
  const wide = out + ((n & ~3) << 2);
  while (out < wide) {
    v128.store(out, i32x4.add(v128.load(a), v128.load(b)));
    out += 16;
    a += 16;
    b += 16;
  }
  while (out < end) {
    store<i32>(out, load<i32>(a) + load<i32>(b));
    out += 4;
    a += 4;
    b += 4;
  }
}

/** out = a widened from bf16 to f32. */
export function widenBf16(out: usize, a: usize, n: usize): void {
  const end = out + (n << 2);
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
  const zero = i16x8.splat(0);
  while (out < wide) {
    const x = v128.load(a);
    // A bf16 is the upper half of an f32: interleave with zeros below.
    const low = i8x16.shuffle(zero, x, 0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23);
    const high = i8x16.shuffle(
      zero,
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
    v128.store(out, f32x4.add(v128.load(out), low));
    v128.store(out, f32x4.add(v128.load(out, 16), high), 16);
    out += 32;
    a += 16;
  }
  while (out < end) {
    store<f32>(out, load<f32>(out) + reinterpret<f32>((<u32>load<u16>(a)) << 16));
    out += 4;
    a += 2;
  }
}

/** out = a rounded from f32 to bf16, ties to even; NaN stays NaN. */
export function narrowBf16(out: usize, a: usize, n: usize): void {
  const end = a + (n << 2);
  while (a < end) {
    const bits = load<u32>(a);
    const nan = (bits & 0x7fffffff) > 0x7f800000;
    const rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    store<u16>(out, <u16>(nan ? (bits >> 16) | 64 : rounded));
    out += 2;
    a += 4;
  }
}

/** Copies `n` bytes. */
export function move(out: usize, a: usize, n: usize): void {
  memory.copy(out, a, n);
}

// Sums inside the communicator's arena. `n` is a count of elements; `out` may equal `a`.
// Float sums are lane-wise, so the result of an element does not depend on where it sits.

export { addBf16, narrowBf16, widenBf16 } from "./bf16";

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

/** Copies `n` bytes. */
export function move(out: usize, a: usize, n: usize): void {
  memory.copy(out, a, n);
}

/** Weights kept in fewer bits, written out as float32: NF4 (Dettmers et al., QLoRA, 2023) and int8. */

/** Numbers that share a scale in NF4. */
const BLOCK: i32 = 64;

/** Byte p of each of 16 floats at `table`. */
// @ts-ignore: decorator
@inline
function plane0(a: v128, b: v128, c: v128, d: v128): v128 {
  const low = i8x16.shuffle(a, b, 0, 4, 8, 12, 16, 20, 24, 28, 0, 0, 0, 0, 0, 0, 0, 0);
  const high = i8x16.shuffle(c, d, 0, 4, 8, 12, 16, 20, 24, 28, 0, 0, 0, 0, 0, 0, 0, 0);
  return i64x2.shuffle(low, high, 0, 2);
}

/**
 * out[n] = table[code] * scales[i / 64], for codes of 4 bits, the first of a byte in its upper half;
 * `table` has 16 floats. The last block may be shorter.
 */
export function unpackNf4(codes: usize, scales: usize, table: usize, out: usize, n: i32): void {
  const t0 = v128.load(table);
  const t1 = v128.load(table, 16);
  const t2 = v128.load(table, 32);
  const t3 = v128.load(table, 48);
  // The bytes of the table's floats, plane by plane: a shift brings each byte down to the lowest.
  const p0 = plane0(t0, t1, t2, t3);
  const p1 = plane0(i32x4.shr_u(t0, 8), i32x4.shr_u(t1, 8), i32x4.shr_u(t2, 8), i32x4.shr_u(t3, 8));
  const p2 = plane0(
    i32x4.shr_u(t0, 16),
    i32x4.shr_u(t1, 16),
    i32x4.shr_u(t2, 16),
    i32x4.shr_u(t3, 16),
  );
  const p3 = plane0(
    i32x4.shr_u(t0, 24),
    i32x4.shr_u(t1, 24),
    i32x4.shr_u(t2, 24),
    i32x4.shr_u(t3, 24),
  );
  const low = i8x16.splat(15);
  const whole = n & ~(BLOCK - 1);
  for (let at = 0; at < whole; at += BLOCK) {
    const scale = f32x4.splat(load<f32>(scales));
    for (let i = 0; i < BLOCK / 32; i++) {
      const pairs = v128.load(codes);
      const firsts = i8x16.shr_u(pairs, 4);
      const seconds = v128.and(pairs, low);
      const a = i8x16.shuffle(
        firsts,
        seconds,
        0,
        16,
        1,
        17,
        2,
        18,
        3,
        19,
        4,
        20,
        5,
        21,
        6,
        22,
        7,
        23,
      );
      const b = i8x16.shuffle(
        firsts,
        seconds,
        8,
        24,
        9,
        25,
        10,
        26,
        11,
        27,
        12,
        28,
        13,
        29,
        14,
        30,
        15,
        31,
      );
      write16(a, p0, p1, p2, p3, scale, out);
      write16(b, p0, p1, p2, p3, scale, out + 64);
      codes += 16;
      out += 128;
    }
    scales += 4;
  }
  for (let i = whole; i < n; i++) {
    const pair = <u32>load<u8>(codes + ((i - whole) >> 1));
    const code = i & 1 ? pair & 15 : pair >> 4;
    store<f32>(out, load<f32>(table + (code << 2)) * load<f32>(scales));
    out += 4;
  }
}

/** The floats of 16 codes, by the four bytes of each. */
// @ts-ignore: decorator
@inline
function write16(
  codes: v128,
  p0: v128,
  p1: v128,
  p2: v128,
  p3: v128,
  scale: v128,
  out: usize,
): void {
  const b0 = i8x16.swizzle(p0, codes);
  const b1 = i8x16.swizzle(p1, codes);
  const b2 = i8x16.swizzle(p2, codes);
  const b3 = i8x16.swizzle(p3, codes);
  const low01 = i8x16.shuffle(b0, b1, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const high01 = i8x16.shuffle(b0, b1, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  const low23 = i8x16.shuffle(b2, b3, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
  const high23 = i8x16.shuffle(b2, b3, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  v128.store(out, f32x4.mul(i16x8.shuffle(low01, low23, 0, 8, 1, 9, 2, 10, 3, 11), scale));
  v128.store(out, f32x4.mul(i16x8.shuffle(low01, low23, 4, 12, 5, 13, 6, 14, 7, 15), scale), 16);
  v128.store(out, f32x4.mul(i16x8.shuffle(high01, high23, 0, 8, 1, 9, 2, 10, 3, 11), scale), 32);
  v128.store(out, f32x4.mul(i16x8.shuffle(high01, high23, 4, 12, 5, 13, 6, 14, 7, 15), scale), 48);
}

/**
 * out[n] = table[codes[i]] * groups[(first + i) / 256] + offset: scales that are kept in 8 bits, of which
 * the one at `codes` has place `first` among all; `table` has 256 floats.
 */
export function unpackScales(
  codes: usize,
  first: i32,
  groups: usize,
  offset: f32,
  table: usize,
  out: usize,
  n: i32,
): void {
  for (let i = 0; i < n; i++) {
    const value = load<f32>(table + (<usize>load<u8>(codes + i) << 2));
    store<f32>(out, value * load<f32>(groups + (<usize>((first + i) >> 8) << 2)) + offset);
    out += 4;
  }
}

/** out[rows, cols] = codes * scales[row] / 127, for signed codes of 8 bits. */
export function unpackInt8(codes: usize, scales: usize, out: usize, rows: i32, cols: i32): void {
  for (let row = 0; row < rows; row++) {
    const factor = load<f32>(scales + (<usize>row << 2)) * <f32>(1.0 / 127);
    const scale = f32x4.splat(factor);
    let i = 0;
    for (; i + 16 <= cols; i += 16) {
      const c = v128.load(codes);
      const low = i16x8.extend_low_i8x16_s(c);
      const high = i16x8.extend_high_i8x16_s(c);
      const a = f32x4.convert_i32x4_s(i32x4.extend_low_i16x8_s(low));
      const b = f32x4.convert_i32x4_s(i32x4.extend_high_i16x8_s(low));
      const d = f32x4.convert_i32x4_s(i32x4.extend_low_i16x8_s(high));
      const e = f32x4.convert_i32x4_s(i32x4.extend_high_i16x8_s(high));
      v128.store(out, f32x4.mul(a, scale));
      v128.store(out, f32x4.mul(b, scale), 16);
      v128.store(out, f32x4.mul(d, scale), 32);
      v128.store(out, f32x4.mul(e, scale), 48);
      codes += 16;
      out += 64;
    }
    for (; i < cols; i++) {
      store<f32>(out, <f32>load<i8>(codes) * factor);
      codes++;
      out += 4;
    }
  }
}

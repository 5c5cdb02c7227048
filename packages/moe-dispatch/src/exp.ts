/**
 * The exponential, from multiplications, additions and a table of 64 powers: 2^(n/64)·e^r with
 * |r| ≤ ln 2/128 and five terms of the series (Tang, ACM TOMS 15, 1989). Within 10⁻¹⁵ of the exact
 * value, several times as fast as `Math.exp`, and, unlike it, the same bits in every engine: a
 * router decides alike in Node and in every browser.
 */

/** 2^(j/64), from square roots and products: IEEE 754 fixes their bits, but not those of `**`. */
const roots = new Float64Array(64).fill(1);
for (let bit = 32, root = Math.SQRT2; bit > 0; bit >>= 1, root = Math.sqrt(root)) {
  for (let j = 0; j < 64; j++) if ((j & bit) !== 0) roots[j]! *= root;
}
/** 2ⁿ for n from −1022 to 1023. */
const powers = new Float64Array(2046).fill(1);
for (let n = 1023; n < 2046; n++) powers[n] = powers[n - 1]! * 2;
for (let n = 1021; n >= 0; n--) powers[n] = powers[n + 1]! / 2;

const perStep = 64 / Math.LN2;
/** ln 2/64 in two parts: the first has few enough bits that n times it is exact. */
const stepHigh = 0.01083042469326756;
const stepLow = 2.9815858269852933e-12;
/** Adding and taking away 1.5·2⁵² rounds to the nearest integer. */
const rounder = 1.5 * 2 ** 52;

/** eˣ. */
export function exp(x: number): number {
  // Written so that NaN and −∞ leave here too; beyond, powers of two would not be normal numbers.
  if (!(x > -708 && x < 709)) return Math.exp(x);
  const n = x * perStep + rounder - rounder;
  const r = x - n * stepHigh - n * stepLow;
  const tail = r + r * r * (0.5 + r * (1 / 6 + r * (1 / 24 + r * (1 / 120))));
  const i = n | 0;
  const root = roots[i & 63]!;
  return (root + root * tail) * powers[(i >> 6) + 1022]!;
}

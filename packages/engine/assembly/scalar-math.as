/**
 * log, exp, sine and cosine in float64 by series of their own: used once per row or per angle,
 * never in an inner loop, with the same bits on every host.
 */

const LN2: f64 = 0.6931471805599453;

/** Natural logarithm; log(0) = -infinity, of a negative NaN. Error below 2 ulp of float64. */
export function log64(x: f64): f64 {
  if (!(x > 0)) return x == 0 ? -Infinity : NaN;
  if (x == Infinity) return x;
  let exponent: i32 = 0;
  if (x < 2.2250738585072014e-308) {
    x *= 18014398509481984.0; // 2^54 makes a denormal normal
    exponent = -54;
  }
  const bits = reinterpret<u64>(x);
  exponent += <i32>(bits >> 52) - 1023;
  let mantissa = reinterpret<f64>((bits & 0x000fffffffffffff) | 0x3ff0000000000000);
  if (mantissa > 1.4142135623730951) {
    mantissa *= 0.5;
    exponent += 1;
  }
  // log(m) = 2 atanh(s), s = (m - 1) / (m + 1), |s| <= 0.172
  const s = (mantissa - 1) / (mantissa + 1);
  const z = s * s;
  let series: f64 = 0;
  for (let odd: f64 = 23; odd > 2; odd -= 2) series = (series + 1 / odd) * z;
  return <f64>exponent * LN2 + 2 * s * (1 + series);
}

/** exp in float64 for |x| below 700. */
export function exp64(x: f64): f64 {
  const n = nearest<f64>(x * 1.4426950408889634);
  const r = x - n * 0.69314718036912381649 - n * 1.90821492927058770002e-10;
  let series: f64 = 1;
  for (let term: f64 = 14; term > 0; term -= 1) series = 1 + (series * r) / term;
  return series * reinterpret<f64>((<i64>n + 1023) << 52);
}

// @ts-ignore: decorator
@inline
function quadrant(x: f64): f64 {
  return nearest<f64>(x * 0.63661977236758134308);
}

/** x minus n quarter turns, pi/2 in two parts (33 and 53 bits): exact enough for |x| < 1e8. */
// @ts-ignore: decorator
@inline
function remainder(x: f64, n: f64): f64 {
  return x - n * 1.57079632673412561417 - n * 6.07710050650619224932e-11;
}

function sineSeries(r: f64): f64 {
  let series: f64 = 1;
  for (let term: f64 = 16; term > 0; term -= 2) series = 1 - (series * r * r) / (term * (term + 1));
  return series * r;
}

function cosineSeries(r: f64): f64 {
  let series: f64 = 1;
  for (let term: f64 = 16; term > 0; term -= 2) series = 1 - (series * r * r) / (term * (term - 1));
  return series;
}

/** Cosine of an angle in radians, |x| < 1e8. */
export function cosine64(x: f64): f64 {
  const n = quadrant(x);
  const r = remainder(x, n);
  const turn = <i32>(<i64>n & 3);
  const value = turn & 1 ? sineSeries(r) : cosineSeries(r);
  return turn == 1 || turn == 2 ? -value : value;
}

/** Sine of an angle in radians, |x| < 1e8. */
export function sine64(x: f64): f64 {
  const n = quadrant(x);
  const r = remainder(x, n);
  const turn = <i32>(<i64>n & 3);
  const value = turn & 1 ? cosineSeries(r) : sineSeries(r);
  return turn > 1 ? -value : value;
}
